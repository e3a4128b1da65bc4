# The changes that an apply would make.

kubectl diff -f pod.yaml

kubectl apply -f pod.yaml

kubectl diff -f pod.yaml

sed 's/1\.29/1.30/; s/, tier: front//' pod.yaml >changed.yaml
kubectl diff -f changed.yaml

kubectl diff --server-side --force-conflicts -f changed.yaml

kubectl diff --server-side -f changed.yaml

sed 's/containerPort: 80/containerPort: 99999/' pod.yaml | kubectl diff -f -

kubectl diff -f limitrange.yaml

kubectl diff -f nothing.yaml
