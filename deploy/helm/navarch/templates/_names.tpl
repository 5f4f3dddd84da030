{{- /* What every object is called, those of the whole cluster as well: two releases never share one. */ -}}
{{- define "navarch.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "navarch" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-navarch" (.Release.Name | trunc 32 | trimSuffix "-") -}}
{{- end -}}
{{- end }}

{{- define "navarch.selector" -}}
app.kubernetes.io/name: navarch
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "navarch.labels" -}}
{{ include "navarch.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
