{{/* Checks of values that depend on each other. values.schema.json checks each alone, and its message for an `if` or a `not` says only that it failed. */}}

{{- define "tutti.checks" -}}
{{- $absent := include "tutti.absentValues" . | fromYamlArray -}}
{{- if $absent -}}
{{- fail (printf "\n\nvalues that are null, or that --reuse-values took from another chart: want something else than null, or --reset-then-reuse-values:\n- %s\n" (join "\n- " $absent)) -}}
{{- end -}}
{{- $problems := list -}}
{{- range $name, $image := dict "operator" .Values.operator.image "router" .Values.router.image "step" .Values.step.image "nats" .Values.nats.image -}}
{{- if eq $image.tag "latest" -}}
{{- $problems = append $problems (printf "%s.image.tag: got latest, want a version, or a digest" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $image := pick .Values.step "pythonImage" "cudaImage" "pythonCudaImage" -}}
{{- if eq $image.tag "latest" -}}
{{- $problems = append $problems (printf "step.%s.tag: got latest, want a version, or a digest" $name) -}}
{{- end -}}
{{- if and (or $image.tag $image.digest) (not $image.repository) -}}
{{- $problems = append $problems (printf "step.%s: got a tag or a digest alone, want step.%s.repository too" $name $name) -}}
{{- end -}}
{{- end -}}
{{- with .Values.step -}}
{{- if and .image.digest (regexMatch "(^|/)tutti/step$" .image.repository) -}}
{{- if not .pythonImage.repository -}}
{{- $problems = append $problems "step.image.digest: got a digest without step.pythonImage, want its repository and digest too" -}}
{{- end -}}
{{- $names := ternary (list "cudaImage" "pythonCudaImage") (list "cudaImage") (regexMatch "^$|(^|/)tutti/step-python$" (default "" .pythonImage.repository)) -}}
{{- range $name := $names -}}
{{- if not (index $.Values.step $name).repository -}}
{{- $problems = append $problems (printf "step.image.digest: got a digest without step.%s, want its repository and digest too; without GPUs, those of step.%s" $name (ternary "image" "pythonImage" (eq $name "cudaImage"))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.step.cache -}}
{{- if and .hostPath .claim -}}
{{- $problems = append $problems "step.cache: got hostPath and claim, want one of the two" -}}
{{- end -}}
{{- if and (not .hostPath) (not .claim) (or .namespaces (ne (int .maxGiB) 100)) -}}
{{- $problems = append $problems "step.cache: got namespaces or maxGiB without a place, want hostPath or claim" -}}
{{- end -}}
{{- end -}}
{{- range $name, $defaults := dict "step" .Values.step.defaults "router" .Values.router.defaults -}}
{{- $template := $defaults.podTemplate | default dict -}}
{{- if regexMatch "[\\[:,]null[\\],}]" (toJson $template) -}}
{{- $problems = append $problems (printf "%s.defaults.podTemplate: got null, want $patch: delete in an object to remove what is there" $name) -}}
{{- end -}}
{{- range $key := keys (dig "metadata" "labels" (dict) $template) | sortAlpha -}}
{{- if regexMatch "^(app\\.kubernetes\\.io|([a-z0-9.-]+\\.)?tutti\\.dev)/" $key -}}
{{- $problems = append $problems (printf "%s.defaults.podTemplate.metadata.labels: got %s, which belongs to the operator; want another prefix" $name $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key := keys .Values.global | sortAlpha -}}
{{- if and (ne $key "imageRegistry") (eq (lower $key) "imageregistry") -}}
{{- $problems = append $problems (printf "global.%s: want global.imageRegistry" $key) -}}
{{- end -}}
{{- end -}}
{{- with .Values.scope -}}
{{- if and (eq .mode "Namespaces") (not .namespaces) -}}
{{- $problems = append $problems "scope.namespaces: got none, want the namespaces to serve: scope.mode is Namespaces" -}}
{{- end -}}
{{- if and (eq .mode "Cluster") .namespaces -}}
{{- $problems = append $problems (printf "scope.namespaces: got %s, but scope.mode is Cluster, which serves all; want scope.mode: Namespaces, or none" (join ", " .namespaces)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.telemetry -}}
{{- if and .otlpEndpoint (not (include "tutti.isCollector" .otlpEndpoint)) -}}
{{- $problems = append $problems (printf "telemetry.otlpEndpoint: got %s, want the base of OTLP over HTTP, http://HOST:4318, without /v1/traces" .otlpEndpoint) -}}
{{- end -}}
{{- if and (not .otlpEndpoint) (or .headersSecret (ne (float64 .sampleRatio) 1.0)) -}}
{{- $problems = append $problems "telemetry.otlpEndpoint: got none, want the collector: telemetry.headersSecret or telemetry.sampleRatio is set" -}}
{{- end -}}
{{- end -}}
{{- $problems = concat $problems (include "tutti.natsChecks" . | fromYamlArray) -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.enabled) -}}
{{- $problems = append $problems "metrics.serviceMonitor.enabled: got true, want metrics.enabled: true too: it selects that Service" -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "\n\nvalues that do not fit together:\n- %s\n" (join "\n- " $problems)) -}}
{{- end -}}
{{- end -}}

{{/* A YAML list, empty if all is well. */}}
{{- define "tutti.natsChecks" -}}
{{- $external := .Values.nats.external -}}
{{- if .Values.nats.enabled -}}
{{- range $key, $value := $external }}
{{- if $value }}
- "nats.external.{{ $key }}: is for servers of your own; got nats.enabled: true, want false, or nothing in nats.external"
{{- end }}
{{- end }}
{{- $pending := .Values.nats.config.maxPending -}}
{{- $unit := regexFind "[KMG]B$" $pending -}}
{{- $size := mul (trimSuffix $unit $pending | int64) (get (dict "KB" 1024 "MB" 1048576 "GB" 1073741824) $unit) -}}
{{- if lt $size 16777216 }}
- "nats.config.maxPending: got {{ $pending }}, want 16MB at least: a server would end connections with large tensors"
{{- end }}
{{- else -}}
{{- if not $external.urls }}
- "nats.external.urls: got none, want the URLs of your servers: nats.enabled is false"
{{- end }}
{{- if not $external.issuerSecret }}
- "nats.external.issuerSecret: got none, want the Secret with your signing key: nats.enabled is false"
{{- end }}
{{- end -}}
{{- end -}}

{{/* Not empty if pods would send their traces there: as the operator checks --otlp-endpoint (workload-flags.test.ts). No part of it is one that it would read in another way, such as /./ or a number of ten digits for an IPv4 address. */}}
{{- define "tutti.isCollector" -}}
{{- $isAddress := regexMatch `^https?://(?:(?:[A-Za-z0-9_-]+\.)*[A-Za-z_][A-Za-z0-9_-]*\.?|(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])|\[(?:(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,7}:|(?:[0-9A-Fa-f]{1,4}:){1,6}:[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,4}(?::[0-9A-Fa-f]{1,4}){1,3}|::(?:[0-9A-Fa-f]{1,4}:){0,5}[0-9A-Fa-f]{1,4})\])(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?$` . -}}
{{- if and $isAddress (not (regexMatch `(?:[/.][Xx][Nn]--|/v1/traces/?$)` .)) -}}yes{{- end -}}
{{- end -}}

{{/* Of each group, its values that templates need. Those whose default is empty, and Kubernetes' own fields, may be null. */}}
{{- define "tutti.neededValues" -}}
"": [global, crds, scope, operator, serviceAccount, rbac, router, step, proxy, nats, networkPolicy, telemetry, metrics, tests]
global: [compatibility]
global.compatibility: [openshift]
global.compatibility.openshift: [adaptSecurityContext]
crds: [enabled, keep]
scope: [mode]
operator: [replicas, image, logLevel, podDisruptionBudget]
operator.image: [repository, pullPolicy]
operator.podDisruptionBudget: [enabled]
serviceAccount: [create]
rbac: [create, aggregateRoles]
router: [replicas, image, allowImage, console, defaults]
router.image: [repository, pullPolicy]
step: [image, pythonImage, cudaImage, pythonCudaImage, allowHostAccess, imageVolumes, cache, defaults]
step.cache: [maxGiB]
step.image: [repository, pullPolicy]
proxy: [none]
nats: [enabled, replicas, subjectPrefix, credentialLifetimeSeconds, image, config, accounts, podDisruptionBudget, external]
nats.image: [repository, tag, pullPolicy]
nats.config: [maxPayload, maxPending, goMemoryLimit, maxConnections]
nats.accounts: [connections, subscriptions]
nats.podDisruptionBudget: [enabled]
nats.external: [privateAuthority]
networkPolicy: [enabled]
telemetry: [sampleRatio]
metrics: [enabled, serviceMonitor, podMonitor, prometheusRule, dashboards]
metrics.serviceMonitor: [enabled, interval]
metrics.podMonitor: [enabled, interval]
metrics.prometheusRule: [enabled, stepSeconds, waitingRequests]
metrics.dashboards: [enabled]
tests: [enabled]
{{- end -}}

{{/* A YAML list: those that are not there. */}}
{{- define "tutti.absentValues" -}}
{{- $values := .Values -}}
{{- range $path, $names := include "tutti.neededValues" . | fromYaml -}}
{{- $group := $values -}}
{{- range without (splitList "." $path) "" -}}
{{- $group = index ($group | default dict) . -}}
{{- end -}}
{{- range $name := $names -}}
{{- if and (kindIs "map" $group) (kindIs "invalid" (index $group $name)) }}
- {{ printf "%s.%s" $path $name | trimPrefix "." }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
