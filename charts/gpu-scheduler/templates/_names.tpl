{{- /*
The names that people and tools look for. All of it is in kube-system, wherever the release itself is recorded.
*/ -}}
{{- define "tessera.namespace" -}}kube-system{{- end -}}
{{- define "tessera.scheduler" -}}hami-scheduler{{- end -}}
{{- define "tessera.agent" -}}hami-device-plugin{{- end -}}
{{- define "tessera.operator" -}}tessera-operator{{- end -}}
{{- define "tessera.secret" -}}hami-scheduler-tls{{- end -}}
{{- define "tessera.webhook" -}}hami-webhook{{- end -}}

{{- define "tessera.labels" -}}
app.kubernetes.io/part-of: tessera
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- /* What selects pods must never change, so it tells neither version nor release. */ -}}
{{- define "tessera.scheduler.selector" -}}
app.kubernetes.io/name: {{ include "tessera.scheduler" . }}
{{- end -}}
{{- define "tessera.agent.selector" -}}
app.kubernetes.io/name: {{ include "tessera.agent" . }}
{{- end -}}
{{- define "tessera.operator.selector" -}}
app.kubernetes.io/name: {{ include "tessera.operator" . }}
{{- end -}}

{{- define "tessera.scheduler.image" -}}
{{- with .Values.scheduler.image -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "tessera.agent.image" -}}
{{- with .Values.devicePlugin.image -}}
{{ .repository | default $.Values.scheduler.image.repository }}:{{ .tag | default $.Values.scheduler.image.tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* A cluster's version may have its provider's suffix, which kube-scheduler's images have not. */ -}}
{{- define "tessera.kube-scheduler.image" -}}
{{- $version := semver .Capabilities.KubeVersion.Version -}}
{{- with .Values.kubeScheduler.image -}}
{{ .repository }}:{{ .tag | default (printf "v%d.%d.%d" $version.Major $version.Minor $version.Patch) }}
{{- end -}}
{{- end -}}

{{- define "tessera.images" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* A pod that needs nothing of its node. */ -}}
{{- define "tessera.unprivileged" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* Nothing that a process of ours does not need. */ -}}
{{- define "tessera.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* The release that a definition in the cluster belongs to, if that is another than this one. */ -}}
{{- define "tessera.foreign-owner" -}}
{{- $root := first . }}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" (last .) }}
{{- $annotations := .metadata.annotations | default dict }}
{{- $owner := printf "%s/%s" (get $annotations "meta.helm.sh/release-namespace") (get $annotations "meta.helm.sh/release-name") }}
{{- if ne $owner (printf "%s/%s" $root.Release.Namespace $root.Release.Name) }}{{ $owner }}{{ end }}
{{- end }}
{{- end }}
