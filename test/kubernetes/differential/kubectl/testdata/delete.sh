# Deleting in all ways.

kubectl apply -f pods.yaml -f pod.yaml -f limitrange.yaml

kubectl delete pod web --dry-run=client

kubectl delete pod web --dry-run=server

kubectl delete pod web

kubectl delete pod web

kubectl delete pod web --ignore-not-found

kubectl delete pod web db-1

kubectl delete limits limits -o name

# This Pod is bound to a node, so its termination must be confirmed.

kubectl delete pod web-1 --wait=false

kubectl get pod web-1

kubectl get pod web-1 -o 'jsonpath={.metadata.deletionGracePeriodSeconds}'

kubectl delete pod web-1 --grace-period=5 --wait=false

kubectl delete pod web-1 --grace-period=0 --wait=false

kubectl delete pod web-1 --now --wait=false

kubectl delete pod web-1 --grace-period=0 --force

# The delete waits for the kubelet to confirm the termination.

kubectl create -f pods.yaml

kubectl delete pod web-1 >deleted &
until [ "$(kubectl get pod web-1 -o 'jsonpath={.metadata.deletionTimestamp}')" ]; do :; done
kubectl delete pod web-1 --grace-period=0 --force
wait $!; code=$?
cat deleted; exit $code

kubectl create -f pods.yaml -o name

kubectl delete pods -l app=web --grace-period=0 --force

kubectl delete pods -l app=nothing

kubectl delete pods

kubectl delete pods --all --field-selector spec.restartPolicy=Always

kubectl delete pods --all --cascade=background

kubectl delete pods --all

kubectl create -f pod.yaml

kubectl delete pod web --cascade=orphan --wait=false

kubectl get pod web -o 'jsonpath={.metadata.finalizers}'

kubectl patch pod web --type=merge -p '{"metadata": {"finalizers": null}}'

kubectl create -f pod.yaml

kubectl delete -f pod.yaml --cascade=foreground --wait=false

kubectl delete pod web --cascade=sideways

kubectl delete -f pods.yaml

kubectl delete -f pods.yaml --ignore-not-found

kubectl delete things a
