# The documentation of the fields.

kubectl explain pods

kubectl explain namespaces

kubectl explain limits

kubectl explain po.spec.containers.resources.limits

kubectl explain pod.spec.containers.livenessProbe --recursive

kubectl explain pod.spec.volumes

kubectl explain ns.spec

kubectl explain ns.status.conditions

kubectl explain limitranges.spec.limits

kubectl explain limits.spec.limits.type

kubectl explain pod.metadata.ownerReferences

kubectl explain pod.spec.container

kubectl explain things

kubectl explain pod.spec.tolerations --output=plaintext-openapiv2
