# Warnings, which kubectl prints in addition to its output.

kubectl create -f - <<END
apiVersion: v1
kind: Pod
metadata:
  name: odd
  annotations: {scheduler.alpha.kubernetes.io/critical-pod: ""}
spec:
  nodeSelector: {beta.kubernetes.io/os: linux}
  containers:
  - name: c
    image: i
    env: [{name: A, value: a}, {name: A, value: b}]
    ports: [{containerPort: 80}, {containerPort: 80}]
    resources: {requests: {memory: 100m}}
END

kubectl apply --warnings-as-errors -f - <<END
apiVersion: v1
kind: Pod
metadata: {name: strict}
spec:
  containers:
  - {name: c, image: i, resources: {limits: {memory: 1500m}}}
END

kubectl get pods
