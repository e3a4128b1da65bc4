# Namespaces, from creation to removal.

cat >other.yaml <<END
apiVersion: v1
kind: Namespace
metadata:
  name: $NS-other
  labels: {team: a}
END
kubectl create -f other.yaml

kubectl create -f other.yaml

kubectl get ns "$NS" "$NS-other"

kubectl get namespaces -l team=a -o wide

kubectl get ns "$NS-other" -o yaml

kubectl get ns "$NS-other" -o json --show-managed-fields

kubectl get ns --field-selector "metadata.name=$NS,status.phase=Active" -o name

kubectl get ns --field-selector spec.finalizers=kubernetes

kubectl get ns nowhere

kubectl label ns "$NS-other" team=b --overwrite

kubectl label ns "$NS-other" kubernetes.io/metadata.name-

kubectl get ns "$NS-other" --show-labels

kubectl apply -f other.yaml

kubectl apply --server-side -f other.yaml --field-manager=other

kubectl apply --server-side -f other.yaml --force-conflicts

kubectl patch ns "$NS-other" --type=merge -p '{"spec": {"finalizers": ["example.com/mine"]}}'

kubectl replace -f other.yaml

kubectl wait --for=jsonpath='{.status.phase}'=Active "ns/$NS-other"

kubectl create -f - <<END
apiVersion: v1
kind: Namespace
metadata: {name: Not.A.Name, labels: {"a b": c}}
spec: {finalizers: [short]}
END

kubectl describe ns nowhere

kubectl delete ns default

kubectl delete ns nowhere

kubectl delete ns "$NS-other" --dry-run=server

kubectl create -f pod.yaml -n "$NS-other"

kubectl patch pod web -n "$NS-other" --type=merge -p '{"metadata": {"finalizers": ["example.com/held"]}}'

kubectl delete ns "$NS-other" --wait=false

kubectl delete ns "$NS-other" --wait=false

kubectl delete ns "$NS-other" --timeout=2s

kubectl get ns "$NS-other"

kubectl create -f other.yaml

kubectl create -f pods.yaml -n "$NS-other"

kubectl apply -f limitrange.yaml -n "$NS-other"

kubectl apply --server-side -f limitrange.yaml -n "$NS-other"

kubectl label pod web late=yes -n "$NS-other"

kubectl delete pod web -n "$NS-other" --wait=false

kubectl patch pod web -n "$NS-other" --type=json -p '[{"op": "remove", "path": "/metadata/finalizers"}]'

echo "{\"apiVersion\": \"v1\", \"kind\": \"Namespace\", \"metadata\": {\"name\": \"$NS-other\"}}" |
    kubectl replace --raw "/api/v1/namespaces/$NS-other/finalize" -f - >removed.json

kubectl wait --for=delete "ns/$NS-other"

kubectl get ns "$NS-other"
