# Labels and annotations.

kubectl create -f pods.yaml

kubectl label pod web-1 colour=red

kubectl label pod web-1 colour=red

kubectl label pod web-1 colour=blue

kubectl label pod web-1 colour=blue --overwrite

kubectl label pods -l app=web shared=yes

kubectl label pod web-1 --list | sort

kubectl label pods --all --list | sort

kubectl label pod web-1 colour- nothing-

kubectl label pod web-1 'not/a/key=x'

kubectl label pod web-1 key='not a value'

kubectl label pod web-1 a=b --resource-version=1

kubectl label pod web-1 a=b --dry-run=server -o name

kubectl label pod nothing a=b

kubectl annotate pod web-1 note='a text, with words'

kubectl annotate pod web-1 note=other

kubectl annotate pod web-1 note=other --overwrite

kubectl annotate pod web-1 --list | sort

kubectl annotate pod web-1 note-

kubectl annotate pod web-1 'not/a/key=x'

kubectl annotate pods --all seen=yes --dry-run=client

kubectl get pod web-1 -o 'jsonpath={.metadata.labels} {.metadata.annotations}'
