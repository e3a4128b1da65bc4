# Creating and replacing.

kubectl create -f pod.yaml --dry-run=server -o yaml

kubectl create -f pod.yaml --dry-run=client -o yaml

kubectl create -f pod.yaml --save-config

kubectl create -f pod.yaml

kubectl replace -f pod.yaml

sed 's/1\.29/1.30/; s/, tier: front//' pod.yaml >changed.yaml
kubectl replace -f changed.yaml

kubectl get pod web -o yaml

kubectl get pod web -o json | sed 's/1\.30/1.31/' | kubectl replace -f -

kubectl get pod web -o yaml | sed 's/resourceVersion: .*/resourceVersion: "1"/' | kubectl replace -f -

kubectl get pod web -o yaml | sed 's/uid: .*/uid: 5f0c0c1e-0000-4000-8000-000000000000/' | kubectl replace -f -

kubectl replace -f changed.yaml --dry-run=server

sed 's/name: nginx/name: other/' pod.yaml >renamed.yaml
kubectl replace -f renamed.yaml

kubectl replace --force -f renamed.yaml

kubectl get pod web -o 'jsonpath={.spec.containers[*].name}'

kubectl replace -f pods.yaml

kubectl replace -f limitrange.yaml

kubectl create -f limitrange.yaml

sed 's/"3"/"2"/' limitrange.yaml | kubectl replace -f -

sed 's/cpu: 100m/cpu: "3"/' limitrange.yaml | kubectl replace -f -

sed 's/    image:/    imagge: a\n    image:/' pod.yaml | kubectl replace -f -

sed 's/name: web/generateName: web-/' pod.yaml | kubectl create -f - | sed 's/web-[a-z0-9]*/web-RANDOM/'

sed 's/image: .*/image: " "/; s/name: web/name: Web/; s/name: nginx/name: n_/' pod.yaml | kubectl create -f -

sed 's/kind: Pod/kind: Pod\nunknown: 1/' pod.yaml | kubectl create -f -

kubectl create -f pods.yaml -f pod.yaml
