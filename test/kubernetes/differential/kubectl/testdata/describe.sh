# The uses of describe in scripts.

kubectl create -f pods.yaml -f limitrange.yaml

kubectl describe pod web-1

kubectl describe pods -l app=web

kubectl describe limits

kubectl describe ns "$NS"

kubectl describe pod nothing

kubectl describe pods -l app=nothing

kubectl describe things
