# Reading Pods in the output formats that scripts and users need.

kubectl get pods

kubectl create -f pods.yaml

kubectl patch pod web-1 --subresource=status --type=merge -p "$(cat status.json)"

kubectl get pods

kubectl get po -o wide

kubectl get pods --show-labels --no-headers

kubectl get pods -L app,tier --show-kind

kubectl get pods -o name

kubectl get pods -l app=web,tier!=back -o name

kubectl get pods -l 'app in (db, cache)'

kubectl get pods -l 'app=='

kubectl get pods -l 'app in db'

kubectl get pods --field-selector spec.nodeName=node-1

kubectl get pods --field-selector status.phase!=Running,spec.restartPolicy=Never -o name

kubectl get pods --field-selector spec.hostname=web

kubectl get pods --sort-by=.spec.containers[0].image

kubectl get pods --sort-by=.metadata.name -o name

kubectl get pods --chunk-size=1

kubectl get pods -A --field-selector "metadata.namespace=$NS"

kubectl get pod web-1 web-2

kubectl get pod web-1 -o yaml

kubectl get pods -l app=web -o yaml

kubectl get pod web-2 -o json

kubectl get pod web-2 -o yaml --show-managed-fields

kubectl get pods -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.containers[*].image}{"\n"}{end}'

kubectl get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,PHASE:.status.phase

kubectl get pods -o 'go-template={{range .items}}{{.metadata.name}}={{.status.qosClass}} {{end}}'

kubectl get pod web-1 --subresource=status

kubectl get pod web-1 --subresource=resize -o name

kubectl get pod nothing

kubectl get pod nothing web-1

kubectl get pod nothing --ignore-not-found

kubectl get pods -l app=nothing

kubectl get pods -n nowhere

kubectl get pod web-1 -n nowhere

kubectl get pods,limits

kubectl get all

kubectl get -f pods.yaml

kubectl get -f pod.yaml

kubectl get pod/web-1 pod/db-1

kubectl get things

kubectl get pods -o nonsense

kubectl get pods --server-print=false

kubectl get pods --field-selector metadata.name=web-1 -o name
