# The three types of patches.

kubectl create -f pod.yaml

kubectl patch pod web -p '{"spec": {"containers": [{"name": "nginx", "image": "nginx:1.31"}]}}'

kubectl patch pod web -p '{"spec": {"containers": [{"name": "nginx", "image": "nginx:1.31"}]}}'

kubectl patch pod web --type=merge -p '{"metadata": {"labels": {"tier": null, "zone": "a"}}}'

kubectl patch pod web --type=json -p '[{"op": "replace", "path": "/spec/containers/0/image", "value": "nginx:1.32"}]'

kubectl get pod web -o yaml

kubectl patch pod web --type=json -p '[{"op": "test", "path": "/metadata/labels/zone", "value": "b"}]'

kubectl patch pod web --type=json -p '[{"op": "remove", "path": "/metadata/labels/nothing"}]'

kubectl patch pod web --type=json -p '[{"op": "turn", "path": "/metadata"}]'

kubectl patch pod web -p '{"spec": {"containers": [{"image": "nginx:1.31"}]}}'

kubectl patch pod web -p '{"spec": {"containers": [{"name": "second", "image": "b"}]}}'

kubectl patch pod web -p '{"spec": {"activeDeadlineSeconds": -1}}'

kubectl patch pod web -p '{"spec": {"activeDeadlineSeconds": "soon"}}'

kubectl patch pod web -p '{"spec": {"nothing": 1}}'

kubectl patch pod web -p '{"metadata": {"name": "other"}}'

kubectl patch pod web -p '{"metadata": {"resourceVersion": "1"}}'

kubectl patch pod web --type=merge -p '{'

kubectl patch pod web --type=strange -p '{}'

kubectl patch pod web --type=merge -p '{"metadata": {"labels": {"dry": "run"}}}' --dry-run=server

kubectl patch pod web --type=merge -p '{"metadata": {"labels": {"dry": "run"}}}' --dry-run=client

kubectl patch pod nothing -p '{}'

kubectl patch pod web --subresource=resize -p '{"spec": {"containers": [{"name": "nginx", "resources": {"requests": {"cpu": "1"}}}]}}'

kubectl patch pod web --subresource=nothing -p '{}'

kubectl patch limits nothing --type=json -p '[]'
