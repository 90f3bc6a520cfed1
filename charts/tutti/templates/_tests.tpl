{{/* Where `helm test` serves its ensemble. */}}
{{- define "tutti.testNamespace" -}}
{{- if .Values.tests.namespace -}}
{{ .Values.tests.namespace }}
{{- else if eq .Values.scope.mode "Namespaces" -}}
{{ first .Values.scope.namespaces }}
{{- else -}}
{{ .Release.Namespace }}
{{- end -}}
{{- end -}}

{{/* Annotations of an object of `helm test`. Argument: its place in the order. */}}
{{- define "tutti.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
