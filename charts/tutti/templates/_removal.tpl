{{/* Annotations of an object that is there while the release is uninstalled. Argument: its place in the order. */}}
{{- define "tutti.removalHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
