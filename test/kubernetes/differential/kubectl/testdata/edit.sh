# An editor that is a script.

kubectl create -f pod.yaml

KUBE_EDITOR="sed -i s/nginx:1.29/nginx:1.30/" kubectl edit pod web

KUBE_EDITOR=true kubectl edit pod web

KUBE_EDITOR="sed -i s/nginx:1.30/nginx:1.31/" kubectl edit pod web -o yaml

KUBE_EDITOR="sed -i s/nginx:1.31/nginx:1.32/" kubectl edit pod web -o json --save-config --output-patch

# An invalid edit is shown again with the error; the second time nothing changes.

cat >editor <<'END'
#!/bin/sh
if grep -q '^# pods\|^# error\|^# The' "$1"; then cp "$1" reopened; else sed -i "$CHANGE" "$1"; fi
END
chmod +x editor
CHANGE='s/containerPort: 80/containerPort: 0/' KUBE_EDITOR=./editor kubectl edit pod web; code=$?
cat reopened; exit $code

CHANGE='s/containers:/containers/' KUBE_EDITOR=./editor kubectl edit pod web; code=$?
cat reopened; exit $code

KUBE_EDITOR="sed -i d" kubectl edit pod web

KUBE_EDITOR="sed -i s/.*name:.web/__name:_other/" kubectl edit pod web

KUBE_EDITOR=false kubectl edit pod web

KUBE_EDITOR=true kubectl edit pod nothing

kubectl create -f limitrange.yaml

KUBE_EDITOR="sed -i s/100m/200m/" kubectl edit limits limits

KUBE_EDITOR="sed -i s/100m/200m/" kubectl edit -f pods.yaml

KUBE_EDITOR="sed -i s/app:/App:/" kubectl edit ns "$NS"

kubectl get pod/web limits/limits -o yaml
