{{- define "management.name" -}}
{{ .Release.Name }}-management
{{- end }}

{{- define "management.labels" -}}
app.kubernetes.io/name: {{ include "management.name" . }}
app.kubernetes.io/part-of: konverge
{{- end }}

{{- define "management.chartLabels" -}}
{{ include "management.labels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "management.scheme" -}}
{{ ternary "https" "http" (ne .Values.management.tls.secretName "") }}
{{- end }}
