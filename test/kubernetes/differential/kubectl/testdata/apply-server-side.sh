# Server-side apply.

kubectl apply --server-side -f pod.yaml --dry-run=server

kubectl apply --server-side -f pod.yaml

kubectl apply --server-side -f pod.yaml

sed 's/1\.29/1.30/; s/app: web/app: shop/' pod.yaml >changed.yaml
kubectl apply --server-side -f changed.yaml --field-manager=other

kubectl apply --server-side -f changed.yaml --field-manager=other --force-conflicts

kubectl get pod web -o yaml --show-managed-fields

kubectl apply --server-side -f pod.yaml

# To client-side apply and back.

kubectl apply -f changed.yaml

kubectl apply --server-side -f changed.yaml

sed 's/    image:/    imagge: a\n    image:/' pod.yaml | kubectl apply --server-side -f -

sed 's/containerPort: 80/containerPort: eighty/' pod.yaml | kubectl apply --server-side -f -

sed 's/    - containerPort: 80/    - containerPort: 80\n    - containerPort: 80/' pod.yaml | kubectl apply --server-side -f -

sed 's/name: web/name: New_/; s/image: .*/image: ""/' pod.yaml | kubectl apply --server-side -f -

kubectl apply --server-side -f pod.yaml --dry-run=client

kubectl apply --server-side -f limitrange.yaml

sed 's/type: Container/type: Thing/; s/cpu: "4"/cpu: "40"/' limitrange.yaml | kubectl apply --server-side -f -

kubectl get limits -o yaml
