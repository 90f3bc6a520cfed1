{{/* NATS: the settings for operator, routers and steps, and the addresses of its own servers. */}}

{{/* Flags of the operator about its own servers, as a YAML list. */}}
{{- define "tutti.natsArgs" -}}
{{- $replicas := int .Values.nats.replicas -}}
{{- $namespace := .Release.Namespace -}}
{{- $name := include "tutti.natsName" . -}}
- --nats=tls://{{ $name }}.{{ $namespace }}.svc:4222
{{- if gt $replicas 1 }}
{{- range $i := until $replicas }}
- --nats-cluster-host={{ $name }}-{{ $i }}.{{ $name }}-headless.{{ $namespace }}.svc:6222
{{- end }}
{{- end }}
- --nats-connections-per-namespace={{ int .Values.nats.accounts.connections }}
- --nats-subscriptions-per-namespace={{ int .Values.nats.accounts.subscriptions }}
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
{{- $nats := .Values.nats -}}
server_name: $POD_NAME
port: 4222
# For the probes alone, which run in the container: it tells every client's subjects to whoever asks.
http: "127.0.0.1:8222"
max_payload: {{ $nats.config.maxPayload }}
max_pending: {{ $nats.config.maxPending }}
max_connections: {{ int $nats.config.maxConnections }}
lame_duck_duration: 30s
lame_duck_grace_period: 5s
{{- if gt (int $nats.replicas) 1 }}
cluster {
  name: {{ include "tutti.natsName" . }}
  port: 6222
  include '{{ include "tutti.natsClusterFile" . }}'
  tls { cert_file: /etc/nats/tls.crt, key_file: /etc/nats/tls.key, ca_file: /etc/nats/ca.crt }
}
{{- end }}
tls { cert_file: /etc/nats/tls.crt, key_file: /etc/nats/tls.key }
resolver { type: full, dir: /data/accounts, allow_delete: true, hard_delete: true }
include 'tenancy.conf'
{{ end -}}

{{/* In the container, because the server's port for it is open to the container alone. */}}
{{- define "tutti.natsProbe" -}}
exec:
  command: [wget, -q, -O, "-", -T, "2", "http://127.0.0.1:8222/healthz"]
{{- end -}}
