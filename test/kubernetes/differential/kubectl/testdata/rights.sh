# Roles, bindings, and what users may do.

kubectl create role reader --verb=get,list,watch --resource=pods,pods/status

kubectl create role reader --verb=get --resource=pods

kubectl create role one --verb=get --resource=pods --resource-name=web -o yaml

kubectl create role odd --verb=get --resource=things

kubectl create role late --verb=get --resource=pods -n nowhere

kubectl create rolebinding late --clusterrole=view --user=ann -n nowhere

kubectl create rolebinding readers --role=reader --user=ann --group=g --serviceaccount="$NS:robot"

kubectl create rolebinding nothing --role=nothing --user=ben

kubectl create rolebinding editors --clusterrole=edit --user=eve

kubectl create rolebinding admins --clusterrole=admin --user=ada

kubectl get roles,rolebindings

kubectl get rolebindings -o wide

kubectl describe role reader

kubectl describe rolebindings

kubectl create clusterrole "$NS-url" --verb=get --non-resource-url=/metrics

kubectl create clusterrole "$NS-sum" --aggregation-rule="part=$NS"

kubectl create clusterrole "$NS-both" --verb=get --resource=pods --aggregation-rule=a=b

kubectl create clusterrolebinding "$NS-urls" --clusterrole="$NS-url" --group="$NS-g"

kubectl get clusterrolebinding "$NS-urls" -o wide

kubectl describe clusterrole "$NS-url" "$NS-sum"

kubectl auth reconcile -f - <<END
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: $NS}
rules: [{apiGroups: [""], resources: [limitranges], verbs: [get]}]
END

kubectl set subject rolebinding readers --user=carl

kubectl patch rolebinding readers --type=merge -p '{"roleRef": {"name": "other"}}'

# Rights.

kubectl auth can-i list pods --as=ann

kubectl auth can-i delete pods --as=ann

kubectl auth can-i get pods/web --subresource=status --as=ann

kubectl auth can-i list pods --as=ann --all-namespaces

kubectl auth can-i get limits --as="system:serviceaccount:$NS:robot"

kubectl auth can-i get /metrics --as=ann --as-group="$NS-g"

kubectl auth can-i get things

kubectl auth can-i '*' '*'

kubectl auth can-i get ns --as=ann -q

kubectl auth whoami --as=ann --as-group=g --as-uid=u --as-user-extra=k=v

# What users with these roles see.

kubectl create -f pod.yaml --as=eve

kubectl create -f limitrange.yaml --as=eve

kubectl create role mine --verb=get --resource=pods --as=eve

kubectl create role mine --verb=get --resource=pods --as=ada

kubectl create role more --verb=create --resource=limitranges --as=ada

kubectl create rolebinding more --clusterrole=cluster-admin --user=ada --as=ada

kubectl create rolebinding more --clusterrole=view --user=vic --as=ada

kubectl get pods --as=vic

kubectl describe pod web --as=vic

kubectl delete pod web --as=vic

kubectl get pods,roles --as=vic

kubectl get pods -n nowhere --as=vic

kubectl get ns "$NS" --as=vic -o name

kubectl get ns nowhere --as=vic

kubectl label ns "$NS" a=b --as=ada

kubectl get clusterroles --as=ada

kubectl delete clusterrole "$NS-url" "$NS-sum"

kubectl delete clusterrolebinding "$NS-urls"
