{{- /*
Copyright The Borough Authors.
SPDX-License-Identifier: Apache-2.0
*/ -}}
{{- /* All labels of an object: (list $ NAME). */}}
{{- define "borough.labels" -}}
{{- with index . 1 -}}
app.kubernetes.io/name: {{ . }}
{{ end -}}
app.kubernetes.io/part-of: borough
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* A duration in seconds. */}}
{{- define "borough.seconds" -}}
{{- $units := dict "h" 3600 "m" 60 "s" 1 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+[hms]" . -1 -}}
{{- $sum = add $sum (mul (regexFind "[0-9]+" . | int64) (get $units (regexFind "[hms]" .))) -}}
{{- end -}}
{{ $sum }}
{{- end }}

{{- /* Fails if the certificates cannot be created. cert-manager would refuse them when everything else is installed. */}}
{{- define "borough.checkCertificates" -}}
{{- $duration := include "borough.seconds" .Values.certificates.duration | int64 -}}
{{- $renewBefore := include "borough.seconds" .Values.certificates.renewBefore | int64 -}}
{{- if or (eq .Values.certificates.mode "cert-manager") (and (eq .Values.etcd.mode "deploy") (eq .Values.etcd.certificates "cert-manager")) -}}
{{- if or (lt $duration 3600) (lt $renewBefore 300) (ge $renewBefore $duration) -}}
{{- fail (printf "certificates.duration is %s and certificates.renewBefore %s: cert-manager needs at least 1h and 5m, and a longer duration" .Values.certificates.duration .Values.certificates.renewBefore) -}}
{{- end -}}
{{- else if lt $duration 30 -}}
{{- fail (printf "certificates.duration is %s, and must be at least 30s" .Values.certificates.duration) -}}
{{- end -}}
{{- end }}

{{- /* The image of one of our binaries: (list $ REPOSITORY). */}}
{{- define "borough.image" -}}
{{- $image := (index . 0).Values.image -}}
{{- with $image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ index . 1 }}:{{ $image.tag }}
{{- end }}

{{- /* The first part of a Pod template: (list NAME VALUES). */}}
{{- define "borough.podMetadata" -}}
{{- with (index . 1).podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
labels:
  app.kubernetes.io/name: {{ index . 0 }}
  app.kubernetes.io/part-of: borough
  {{- with (index . 1).podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* The nodes of Pods: VALUES. */}}
{{- define "borough.nodes" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Scheduling of Pods, except their anti-affinity: (list NAME VALUES). */}}
{{- define "borough.placement" -}}
{{- include "borough.nodes" (index . 1) }}
{{- with (index . 1).topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- else }}
topologySpreadConstraints:
- topologyKey: topology.kubernetes.io/zone
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  {{- if ne (index . 0) "borough-etcd" }}
  matchLabelKeys: ["pod-template-hash"]
  {{- end }}
  labelSelector:
    matchLabels:
      app.kubernetes.io/name: {{ index . 0 }}
{{- end }}
{{- end }}

{{- /* Anti-affinity among the Pods of a Deployment: (list NAME VALUES). */}}
{{- define "borough.affinity" -}}
{{- with (index . 1).affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- else }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        matchLabelKeys: ["pod-template-hash"]
        labelSelector:
          matchLabels:
            app.kubernetes.io/name: {{ index . 0 }}
{{- end }}
{{- end }}

{{- define "borough.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}

{{- /* A PodDisruptionBudget: (list $ NAME unhealthyPodEvictionPolicy). */}}
{{- define "borough.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ index . 1 }}
  namespace: {{ (index . 0).Release.Namespace }}
  labels:
    {{- include "borough.labels" (list (index . 0) (index . 1)) | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: {{ index . 2 }}
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ index . 1 }}
{{- end }}

{{- /* The members of etcd, joined by commas: (list $ FORMAT), a format of name and address. */}}
{{- define "borough.etcdMembers" -}}
{{- $members := list -}}
{{- $root := index . 0 -}}{{- $format := index . 1 -}}
{{- range until (int $root.Values.etcd.members) -}}
{{- $name := printf "borough-etcd-%d" . -}}
{{- $members = append $members ($format | replace "NAME" $name | replace "HOST" (printf "%s.borough-etcd.%s.svc" $name $root.Release.Namespace)) -}}
{{- end -}}
{{- join "," $members -}}
{{- end }}

{{- /* The addresses of etcd, joined by commas. */}}
{{- define "borough.etcdServers" -}}
{{- if eq .Values.etcd.mode "deploy" -}}
{{- include "borough.etcdMembers" (list . "https://HOST:2379") -}}
{{- else -}}
{{- join "," .Values.etcd.servers -}}
{{- end -}}
{{- end }}

{{- /* Fails if servers run that have none of the addresses: during the rollout, clients would write to two databases. */}}
{{- define "borough.checkEtcd" -}}
{{- $servers := include "borough.etcdServers" . | splitList "," -}}
{{- with lookup "apps/v1" "Deployment" .Release.Namespace "borough-apiserver" -}}
{{- if .spec.replicas -}}
{{- range (index .spec.template.spec.containers 0).args -}}
{{- if hasPrefix "--etcd-servers=" . -}}
{{- $same := false -}}
{{- range trimPrefix "--etcd-servers=" . | splitList "," -}}
{{- $same = or $same (has . $servers) -}}
{{- end -}}
{{- if not $same -}}
{{- fail (printf "etcd.mode and etcd.servers cannot be changed while servers run: they have %s, and would get --etcd-servers=%s; see docs/deploy.md, Etcd" . (join "," $servers)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
