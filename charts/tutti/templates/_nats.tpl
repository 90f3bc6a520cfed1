{{/* NATS: the settings for operator, routers and steps, and the addresses of its own servers. */}}

{{/* URLs of the servers, as a YAML list. */}}
{{- define "tutti.natsUrls" -}}
{{- if .Values.nats.enabled -}}
- nats://{{ include "tutti.natsName" . }}.{{ .Release.Namespace }}.svc:4222
{{- else -}}
{{ toYaml .Values.nats.external.urls }}
{{- end -}}
{{- end -}}

{{/* host:port of the cluster port of each server, as a YAML list; empty if there is one. */}}
{{- define "tutti.natsClusterHosts" -}}
{{- $replicas := int .Values.nats.replicas -}}
{{- if and .Values.nats.enabled (gt $replicas 1) -}}
{{- $name := include "tutti.natsName" . -}}
{{- range $i := until $replicas }}
- {{ $name }}-{{ $i }}.{{ $name }}-headless.{{ $.Release.Namespace }}.svc:6222
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Name of the file with the cluster's part of the configuration; see clusterFile in operator/src/nats/server-config.ts. */}}
{{- define "tutti.natsClusterFile" -}}
cluster-{{ int .Values.nats.replicas }}.conf
{{- end -}}

{{/*
The servers' own configuration. Which users they admit is in files that the operator creates. Each change of this text, comments
included, replaces the servers at the next upgrade (tutti.dev/configuration), and a single server is away meanwhile.
*/}}
{{- define "tutti.natsConfig" -}}
server_name: $POD_NAME
port: 4222
# For the probes alone, which run in the container: it tells every client's subjects to whoever asks.
http: "127.0.0.1:8222"
max_payload: {{ .Values.nats.config.maxPayload }}
max_pending: {{ .Values.nats.config.maxPending }}
max_connections: {{ int .Values.nats.config.maxConnections }}
lame_duck_duration: 30s
lame_duck_grace_period: 5s
{{- if gt (int .Values.nats.replicas) 1 }}
cluster {
  name: {{ include "tutti.natsName" . }}
  port: 6222
  include '{{ include "tutti.natsClusterFile" . }}'
}
{{- end }}
include 'tenancy.conf'
{{ end -}}

{{/* In the container, because the server's port for it is open to the container alone. */}}
{{- define "tutti.natsProbe" -}}
exec:
  command: [wget, -q, -O, "-", -T, "2", "http://127.0.0.1:8222/healthz"]
{{- end -}}
