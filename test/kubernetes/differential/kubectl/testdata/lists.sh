# Lists of objects in one file.

kubectl create -f - <<END
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {containers: [{name: c, image: i}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: two}, spec: {containers: [{name: c}]}}
- {apiVersion: v1, kind: LimitRange, metadata: {name: three}, spec: {limits: [{type: Pod}]}}
END

kubectl get pods,limits -o name

kubectl get pods,limits -o yaml >everything.yaml
kubectl delete pods,limits --all
kubectl apply -f everything.yaml
