# The commands that have arguments in place of a manifest.

kubectl create namespace "$NS-made"

kubectl create namespace "$NS-made"

kubectl create namespace "$NS-made" --dry-run=client -o yaml

kubectl create ns Not.A.Name

kubectl run web --image=nginx:1.29 -n "$NS-made" --labels=app=web --port=80

kubectl run web --image=nginx:1.29 -n "$NS-made"

kubectl run once --image=busybox --restart=Never -n "$NS-made" -o yaml --dry-run=server -- sleep 1

kubectl run late --image=busybox -n nowhere

kubectl create quota few --hard=pods=1,requests.cpu=2 -n "$NS-made"

kubectl create quota few --hard=pods=2 -n "$NS-made"

kubectl create quota odd --hard=pods=x -n "$NS-made"

kubectl create quota ends --hard=pods=5 --scopes=Terminating -n "$NS-made"

kubectl wait --for=jsonpath='{.status.used.pods}'=1 quota/few -n "$NS-made" --timeout=100s

kubectl describe quota few -n "$NS-made"

kubectl get quota few -n "$NS-made"

kubectl create -f limitrange.yaml -n "$NS-made"

# kubectl prints the resources of a LimitRange in random order.

kubectl describe limits -n "$NS-made" | sort

kubectl wait --for=jsonpath='{.status.hard.pods}'=5 quota/ends -n "$NS-made" --timeout=100s

kubectl describe ns "$NS-made" | sort

kubectl describe pod web -n "$NS-made"

kubectl get all -n "$NS-made"

kubectl annotate ns "$NS-made" owner=a

kubectl label quota few tier=small -n "$NS-made"

kubectl explain quota.spec.hard

kubectl delete quota --all -n "$NS-made"

kubectl delete pod web -n "$NS-made" --now
