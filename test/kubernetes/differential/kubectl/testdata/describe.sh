# The uses of describe in scripts.

kubectl create -f pods.yaml -f limitrange.yaml

kubectl describe pod web-1

kubectl describe pods -l app=web

# kubectl prints the resources of a LimitRange in random order.

kubectl describe limits | sort

kubectl describe ns "$NS" | sort

kubectl describe pod nothing

kubectl describe pods -l app=nothing

kubectl describe things
