# Lists of objects in one file.

kubectl create -f - <<END
apiVersion: v1
kind: List
items:
- {apiVersion: $API, kind: Pod, metadata: {name: one}, spec: {containers: [{name: c, image: i}]}}
- {apiVersion: $API, kind: Pod, metadata: {name: two}, spec: {containers: [{name: c}]}}
- {apiVersion: $API, kind: LimitRange, metadata: {name: three}, spec: {limits: [{type: Pod}]}}
END

kubectl get pods,limits -o name

kubectl get pods,limits -o yaml >everything.yaml
kubectl delete pods,limits --all
kubectl apply -f everything.yaml
