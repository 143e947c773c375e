{{- /* A role given to an account of ours: root, role (Role or ClusterRole), name, of, account; namespace, if not ours. */ -}}
{{- define "tessera.binding" }}
{{- $root := .root }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .role }}Binding
metadata:
  name: {{ .name }}
  {{- if eq .role "Role" }}
  namespace: {{ .namespace | default (include "tessera.namespace" $root) }}
  {{- end }}
  labels: {{- include "tessera.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .role }}
  name: {{ .of }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ include "tessera.namespace" $root }}
{{- end }}
