{{/* Flags of the operator (operator/README.md), as a YAML list of quoted texts. */}}
{{- define "tutti.operatorArgs" -}}
{{- $flags := list
  "--metrics-port=8080"
  "--health-port=8081"
  (printf "--step-image=%s" (include "tutti.image" (dict "context" . "image" .Values.step.image)))
  (printf "--step-python-image=%s" (include "tutti.pythonImage" .))
  (printf "--step-image-pull-policy=%s" .Values.step.image.pullPolicy)
  (printf "--router-image=%s" (include "tutti.image" (dict "context" . "image" .Values.router.image)))
  (printf "--router-image-pull-policy=%s" .Values.router.image.pullPolicy)
  (printf "--router-replicas=%d" (int .Values.router.replicas))
  (printf "--allow-router-image=%t" .Values.router.allowImage)
  (printf "--allow-host-access=%t" .Values.step.allowHostAccess)
  (printf "--network-policies=%t" .Values.networkPolicy.enabled)
  (printf "--nats-prefix=%s" .Values.nats.subjectPrefix)
  (printf "--nats-credential-lifetime=%d" (int .Values.nats.credentialLifetimeSeconds))
  "--leader-elect-resource-name=tutti-operator"
-}}
{{- if include "tutti.namespaceAssignsUser" . -}}
{{- $flags = append $flags "--namespace-assigns-user=true" -}}
{{- end -}}
{{- if .Values.step.imageVolumes -}}
{{- $flags = append $flags "--image-volumes=true" -}}
{{- end -}}
{{- with .Values.step.fetchEnv -}}
{{- $flags = append $flags (printf "--fetch-env=%s" (toJson .)) -}}
{{- end -}}
{{- with .Values.step.cache -}}
{{- if or .hostPath .claim -}}
{{- $flags = append $flags (ternary (printf "--cache-host-path=%s" .hostPath) (printf "--cache-claim=%s" .claim) (ne .hostPath "")) -}}
{{- $flags = append $flags (printf "--cache-max-bytes=%d" (mul .maxGiB 1073741824)) -}}
{{- range .namespaces -}}
{{- $flags = append $flags (printf "--cache-namespace=%s" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if ne .Values.router.console "None" -}}
{{- $flags = append $flags (printf "--router-console=%s" .Values.router.console) -}}
{{- end -}}
{{- range $name, $repository := dict "cudaImage" "step-cuda" "pythonCudaImage" "step-python-cuda" -}}
{{- with include "tutti.cudaImage" (dict "context" $ "name" $name "repository" $repository) -}}
{{- $flags = append $flags (printf "--%s-image=%s" $repository .) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.operator.logLevel "debug" -}}
{{- $flags = append $flags "--log-verbose=1" -}}
{{- end -}}
{{- if has .Values.operator.logLevel (list "warn" "error") -}}
{{- $flags = append $flags "--log-info=false" -}}
{{- end -}}
{{- if eq .Values.operator.logLevel "error" -}}
{{- $flags = append $flags "--log-warning=false" -}}
{{- end -}}
{{- range $flag, $defaults := dict "step-defaults" .Values.step.defaults "router-defaults" .Values.router.defaults -}}
{{- if or $defaults.resources $defaults.podTemplate -}}
{{- $flags = append $flags (printf "--%s=%s" $flag (pick $defaults "resources" "podTemplate" | toJson)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.proxy -}}
{{- range $flag, $proxy := dict "https-proxy" .https "http-proxy" .http -}}
{{- if $proxy -}}
{{- $flags = append $flags (printf "--%s=%s" $flag $proxy) -}}
{{- end -}}
{{- end -}}
{{- if and .none (or .https .http) -}}
{{- $flags = append $flags (printf "--no-proxy=%s" .none) -}}
{{- end -}}
{{- end -}}
{{- range .Values.imagePullSecrets -}}
{{- $flags = append $flags (printf "--image-pull-secret=%s" .name) -}}
{{- end -}}
{{- if eq .Values.scope.mode "Namespaces" -}}
{{- range .Values.scope.namespaces -}}
{{- $flags = append $flags (printf "--watch-namespace=%s" .) -}}
{{- end -}}
{{- end -}}
{{- range .Values.networkPolicy.meshPorts -}}
{{- $flags = append $flags (printf "--mesh-port=%d" (int .)) -}}
{{- end -}}
{{- range .Values.networkPolicy.scrapeNamespaces -}}
{{- $flags = append $flags (printf "--scrape-namespace=%s" .) -}}
{{- end -}}
{{- with .Values.telemetry -}}
{{- if .otlpEndpoint -}}
{{- $flags = append $flags (printf "--otlp-endpoint=%s" .otlpEndpoint) -}}
{{- $flags = append $flags (printf "--otlp-sample-ratio=%s" (toString .sampleRatio)) -}}
{{- with .headersSecret -}}
{{- $flags = append $flags (printf "--otlp-headers-secret=%s" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.nats.enabled -}}
{{- $flags = concat $flags (include "tutti.natsArgs" . | fromYamlArray) -}}
{{- else -}}
{{- range .Values.nats.external.urls -}}
{{- $flags = append $flags (printf "--nats=%s" .) -}}
{{- end -}}
{{- $flags = append $flags (printf "--nats-issuer-secret=%s" .Values.nats.external.issuerSecret) -}}
{{- $flags = append $flags (printf "--nats-private-authority=%t" .Values.nats.external.privateAuthority) -}}
{{- end -}}
{{- range concat $flags (.Values.operator.extraArgs | default list) }}
- {{ . | quote }}
{{- end }}
{{- end -}}
