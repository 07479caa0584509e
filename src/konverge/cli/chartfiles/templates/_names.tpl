{{- define "operator.labels" -}}
app.kubernetes.io/name: {{ .Release.Name }}
app.kubernetes.io/part-of: @PRODUCT@
{{- end }}

{{- define "operator.chartLabels" -}}
{{ include "operator.labels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "operator.account" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- define "operator.subjects" -}}
- kind: ServiceAccount
  name: {{ include "operator.account" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}
