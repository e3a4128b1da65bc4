# The server itself.

kubectl version

kubectl get --raw /readyz

kubectl get --raw /nothing

kubectl get --raw /apis/nothing

kubectl api-resources --api-group=rbac.authorization.k8s.io -o wide

kubectl api-resources --api-group=coordination.k8s.io

kubectl api-resources --api-group=events.k8s.io -o wide
