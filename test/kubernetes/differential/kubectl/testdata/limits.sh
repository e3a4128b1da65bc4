# LimitRanges, and the Pods that they admit and reject.

kubectl create -f limitrange.yaml

kubectl get limits

kubectl get limits -o wide

kubectl get limitranges limits -o yaml

kubectl describe limits nothing

sed 's/cpu: 500m/cpu: "3"/; s/type: Pod/type: Pod\n    default: {cpu: 1}/' limitrange.yaml | sed 's/name: limits/name: bad/' | kubectl create -f -

# Kubernetes' admission has a short delay until a new LimitRange applies.

until kubectl create -f pod.yaml --dry-run=server -o yaml | grep -q limit-ranger; do :; done

kubectl create -f pod.yaml -o yaml

cat >greedy.yaml <<END
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  initContainers:
  - {name: init, image: i, resources: {requests: {cpu: 50m}, limits: {cpu: 100m}}}
  containers:
  - {name: one, image: i, resources: {requests: {cpu: 100m}, limits: {cpu: 3, memory: 2Gi}}}
  - {name: two, image: i, resources: {requests: {cpu: 1}, limits: {cpu: 2}}}
END
kubectl create -f greedy.yaml

kubectl apply -f greedy.yaml

kubectl apply --server-side -f greedy.yaml

kubectl create -f pods.yaml --dry-run=server

sed 's/cpu: 50m/cpu: 1/' greedy.yaml | kubectl create -f -

kubectl patch pod web --subresource=resize -p '{"spec": {"containers": [{"name": "nginx", "resources": {"requests": {"cpu": "2500m"}, "limits": {"cpu": "2500m"}}}]}}'

kubectl delete limits limits

kubectl delete limits limits
