# Client-side apply.

kubectl apply -f pod.yaml --dry-run=client

kubectl apply -f pod.yaml --dry-run=server

kubectl apply -f pod.yaml

kubectl apply -f pod.yaml

kubectl get pod web -o yaml

sed 's/1\.29/1.30/; s/, tier: front//; s/first/second/' pod.yaml >changed.yaml
kubectl apply -f changed.yaml --dry-run=client

kubectl apply -f changed.yaml --dry-run=server

kubectl apply -f changed.yaml

kubectl get pod web -o yaml

kubectl apply view-last-applied pod web

kubectl apply -f pod.yaml -f limitrange.yaml

# A list in the LimitRange is replaced as a whole.

sed 's/"2"/"1"/; /type: Pod/,$d' limitrange.yaml | kubectl apply -f -

kubectl get limits limits -o yaml

sed 's/name: nginx/name: other/' pod.yaml | kubectl apply -f -

sed 's/containerPort: 80/containerPort: 99999/' pod.yaml | kubectl apply -f -

sed 's/name: web/name: New_/; s/image: .*/image: ""/' pod.yaml | kubectl apply -f -

sed 's/    image:/    imagge: a\n    image:/; s/spec:/spce: {}\nspec:/' pod.yaml | kubectl apply -f -

sed 's/    image:/    image: a\n    image:/' pod.yaml | kubectl apply -f -

sed 's/    image:/    imagge: a\n    image:/' pod.yaml | kubectl apply -f - --validate=warn

sed 's/    image:/    imagge: a\n    image:/' pod.yaml | kubectl apply -f - --validate=ignore

sed 's/containerPort: 80/containerPort: eighty/' pod.yaml | kubectl apply -f -

sed 's/kind: Pod/kind: Thing/' pod.yaml | kubectl apply -f -

sed '/kind: Pod/d' pod.yaml | kubectl apply -f -

sed 's/^spec:/spec/' pod.yaml | kubectl apply -f -

kubectl apply -f nothing.yaml

kubectl apply -f pod.yaml -n other-namespace

kubectl apply -f pod.yaml -l app=other

kubectl apply -f pod.yaml -o name

# Objects that are no longer in the files are pruned.

kind=core/v1/Pod
kubectl apply -f pods.yaml --prune -l app=web --prune-allowlist="$kind"

kubectl get pods -o name
