# Borough's own group. $G is its name after a dot, and $API its version. On Kubernetes
# they are those of core.

kubectl create -f pod.yaml -f limitrange.yaml

kubectl get "pods$G,limitranges$G" -o name

kubectl get "pods$G" web -o yaml

kubectl get "pods$G" nothing

kubectl get "namespaces$G" "$NS"

kubectl describe "pods$G" web

kubectl describe "limitranges$G" limits

kubectl describe "namespaces$G" "$NS"

kubectl explain namespaces --api-version="$API"

kubectl explain pods --api-version="$API"

kubectl explain namespaces.spec --api-version="$API"

kubectl explain pods.spec.volumes --api-version="$API"

KUBE_EDITOR="sed -i s/nginx:1.29/nginx:1.30/" kubectl edit "pods$G" web --save-config --output-patch

sed 's/1\.29/1.31/' pod.yaml | kubectl apply --dry-run=client -f -

sed 's/1\.29/1.31/' pod.yaml | kubectl apply -f -

kubectl patch "pods$G" web -p '{"spec": {"containers": [{"name": "nginx", "image": "nginx:1.32"}]}}'

kubectl patch "pods$G" web --type=merge -p '{'

kubectl label "pods$G" web colour=red

kubectl annotate "pods$G" --all seen=yes

kubectl wait --for=jsonpath='{.metadata.labels.colour}'=red "pods$G/web"

sed 's/containerPort: 80/containerPort: 99999/' pod.yaml | kubectl diff -f -

kubectl delete "pods$G" web

kubectl delete "limitranges$G" --all
