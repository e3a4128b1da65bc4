# Writes through subresources.

kubectl create -f pod.yaml

kubectl get pod web -o json | sed 's/"phase": "Pending"/"phase": "Running", "podIP": "10.0.0.7"/' | kubectl replace --subresource=status -f -

kubectl get pod web

kubectl apply --server-side --subresource=status --field-manager=agent -f - <<END
apiVersion: v1
kind: Pod
metadata: {name: web}
status: {message: all is well}
END

# Managed fields are sorted by the second, and by the manager within one: "later"
# comes after the others by both.
KUBE_EDITOR="sed -i s/Running/Succeeded/" kubectl edit pod web --subresource=status --field-manager=later

kubectl get pod web --subresource=status -o yaml --show-managed-fields

kubectl patch pod web --subresource=ephemeralcontainers -p '{"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}'

kubectl patch pod web --subresource=ephemeralcontainers --type=json -p '[{"op": "remove", "path": "/spec/ephemeralContainers/0"}]'

kubectl get pod web --subresource=ephemeralcontainers

kubectl get pod web --subresource=resize

kubectl create --raw "/api/v1/namespaces/$NS/pods/web/binding" -f - <<END
{"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "web"}, "target": {"kind": "Node", "name": "node-1"}}
END

kubectl get pod web -o wide

kubectl patch limits limits --subresource=status -p '{}'
