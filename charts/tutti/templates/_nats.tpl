{{/* NATS: the settings for operator, routers and steps, and the addresses of its own servers. */}}

{{/*
What becomes of servers without accounts: keep, or remove. If the values do not say, they stay where they run. Empty where the chart's
servers have no accounts.
*/}}
{{- define "tutti.natsFormer" -}}
{{- $accounts := .Values.nats.accounts -}}
{{- if and .Values.nats.enabled $accounts.enabled -}}
{{- $found := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "tutti.natsName" .) -}}
{{- $accounts.former | default (ternary "keep" "remove" (not (empty $found))) -}}
{{- end -}}
{{- end -}}

{{/*
The chart's own servers, as a YAML list: those of one account for all, those with an account for each namespace, or both while an
installation moves from the first to the second. The operator creates `secret`. What is `kept` is not deleted by a rollback, which
the pods that use it need until they are replaced.
*/}}
{{- define "tutti.natsSets" -}}
{{- if .Values.nats.enabled -}}
{{- $name := include "tutti.natsName" . -}}
{{- $former := include "tutti.natsFormer" . -}}
{{- if ne $former "remove" }}
- {name: {{ $name }}, component: nats, secret: tutti-nats-server, accounts: false, kept: false}
{{- end }}
{{- if $former }}
- {name: {{ $name }}-accounts, component: nats-accounts, secret: tutti-nats-accounts, accounts: true, kept: {{ eq $former "keep" }}}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Annotations of the objects of servers. Argument: one of tutti.natsSets. */}}
{{- define "tutti.natsAnnotations" -}}
{{- if .kept -}}
annotations:
  helm.sh/resource-policy: keep
{{- end -}}
{{- end -}}

{{/* Flags of the operator about its own servers, as a YAML list. Argument: {context, set}. */}}
{{- define "tutti.natsSetArgs" -}}
{{- $replicas := int .context.Values.nats.replicas -}}
{{- $namespace := .context.Release.Namespace -}}
{{- $former := ternary "-former" "" (and .context.Values.nats.accounts.enabled (not .set.accounts)) -}}
{{- $name := .set.name -}}
- --nats{{ $former }}={{ ternary "tls" "nats" .set.accounts }}://{{ $name }}.{{ $namespace }}.svc:4222
{{- if gt $replicas 1 }}
{{- range $i := until $replicas }}
- --nats{{ $former }}-cluster-host={{ $name }}-{{ $i }}.{{ $name }}-headless.{{ $namespace }}.svc:6222
{{- end }}
{{- end }}
{{- if .set.accounts }}
- --nats-accounts
- --nats-connections-per-namespace={{ int .context.Values.nats.accounts.connections }}
- --nats-subscriptions-per-namespace={{ int .context.Values.nats.accounts.subscriptions }}
{{- end }}
{{- end -}}

{{/* Name of the file with the cluster's part of the configuration; see clusterFile in operator/src/nats/server-config.ts. */}}
{{- define "tutti.natsClusterFile" -}}
cluster-{{ int .Values.nats.replicas }}.conf
{{- end -}}

{{/*
The servers' own configuration. Which users they admit is in files that the operator creates. Each change of this text, comments
included, replaces the servers at the next upgrade (tutti.dev/configuration), and a single server is away meanwhile. Argument:
{context, set}.
*/}}
{{- define "tutti.natsConfig" -}}
{{- $values := .context.Values.nats -}}
{{- $name := .set.name -}}
server_name: $POD_NAME
port: 4222
# For the probes alone, which run in the container: it tells every client's subjects to whoever asks.
http: "127.0.0.1:8222"
max_payload: {{ $values.config.maxPayload }}
max_pending: {{ ternary $values.accounts.maxPending $values.config.maxPending .set.accounts }}
max_connections: {{ int $values.config.maxConnections }}
lame_duck_duration: 30s
lame_duck_grace_period: 5s
{{- if gt (int $values.replicas) 1 }}
cluster {
  name: {{ $name }}
  port: 6222
  include '{{ include "tutti.natsClusterFile" .context }}'
{{- if .set.accounts }}
  tls { cert_file: /etc/nats/tls.crt, key_file: /etc/nats/tls.key, ca_file: /etc/nats/ca.crt }
{{- end }}
}
{{- end }}
{{- if .set.accounts }}
tls { cert_file: /etc/nats/tls.crt, key_file: /etc/nats/tls.key }
resolver { type: full, dir: /data/accounts, allow_delete: true, hard_delete: true }
{{- end }}
include 'tenancy.conf'
{{ end -}}

{{/* In the container, because the server's port for it is open to the container alone. */}}
{{- define "tutti.natsProbe" -}}
exec:
  command: [wget, -q, -O, "-", -T, "2", "http://127.0.0.1:8222/healthz"]
{{- end -}}
