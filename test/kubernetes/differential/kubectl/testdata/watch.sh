# The output of a watch, from the list to the deletion of the object.

kubectl create -f pod.yaml

mkfifo events
kubectl get pod web -w --output-watch-events >events &
exec 3<events
read -r heading <&3; echo "$heading"
read -r first <&3; echo "$first"
kubectl patch pod web --subresource=status --type=merge -p '{"status": {"phase": "Succeeded"}}'
read -r second <&3; echo "$second"
kubectl delete pod web
until case $line in DELETED*) true ;; *) false ;; esac; do read -r line <&3 || break; echo "$line"; done
kill $!
