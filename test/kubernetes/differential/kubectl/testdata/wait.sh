# Waiting for conditions that are met, and for others.

kubectl create -f pods.yaml

kubectl wait --for=condition=Ready pod/web-1 --timeout=2s

kubectl wait --for=condition=Ready pod/web-1 >waited &
kubectl patch pod web-1 --subresource=status --type=merge -p "$(cat status.json)"
wait $!; code=$?
cat waited; exit $code

kubectl wait --for=condition=Ready=False pod web-1 --timeout=0

kubectl wait --for=jsonpath='{.status.podIP}' pod web-1

kubectl wait --for=jsonpath='{.status.podIP}'=10.0.0.7 pod -l tier=front

kubectl wait --for=create pod/web-2

kubectl wait --for=delete pod/web-1 --timeout=2s

kubectl wait --for=delete pod/nothing

kubectl wait --for=condition=Ready pod/nothing

kubectl wait --for=condition=Ready pods -l app=nothing

kubectl wait --for=nonsense pod/web-1
