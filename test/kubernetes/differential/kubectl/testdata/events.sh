# Events and Leases.

cat >event.yaml <<END
apiVersion: v1
kind: Event
metadata: {name: web.1}
involvedObject: {kind: Pod, name: web, namespace: $NS, fieldPath: "spec.containers{nginx}"}
reason: Started
message: "Started container nginx "
type: Normal
count: 3
firstTimestamp: "2020-01-02T03:04:05Z"
lastTimestamp: "2020-01-02T03:04:05Z"
source: {component: kubelet, host: node-1}
END
kubectl apply -f event.yaml -f pod.yaml

kubectl get events

kubectl get ev -o wide

kubectl get events.events.k8s.io web.1 -o yaml --show-managed-fields

kubectl events

kubectl events --for pod/web --types=Warning

kubectl describe pod web

kubectl describe event web.1 | grep -v Version

kubectl get events --field-selector involvedObject.name=web,type!=Warning -o name

kubectl get events --field-selector involvedObject.host=web

kubectl label event web.1 a=b

KUBE_EDITOR="sed -i s/Started/Stopped/" kubectl edit event web.1

kubectl delete events --all

cat >lease.yaml <<END
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: leader}
spec: {holderIdentity: a, leaseDurationSeconds: 10}
END
kubectl create -f lease.yaml

kubectl get leases

kubectl patch lease leader -p '{"spec": {"holderIdentity": "b", "leaseDurationSeconds": 0}}'

kubectl patch lease leader -p '{"spec": {"holderIdentity": "b"}}'

kubectl replace -f lease.yaml

kubectl apply --server-side -f lease.yaml

kubectl wait --for=jsonpath='{.spec.holderIdentity}'=a lease/leader

kubectl create -f lease.yaml -n nowhere

kubectl create -f event.yaml -n nowhere

kubectl delete -f lease.yaml
