{{/* Names and labels of objects. */}}

{{- define "tutti.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "tutti.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "tutti.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "tutti.operatorName" -}}
{{ include "tutti.fullname" . }}-operator
{{- end -}}

{{- define "tutti.natsName" -}}
{{ include "tutti.fullname" . }}-nats
{{- end -}}

{{- define "tutti.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tutti.operatorName" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Labels by which pods are found. Argument: {context, component}. */}}
{{- define "tutti.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tutti.name" .context }}
app.kubernetes.io/instance: {{ .context.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of an object. Argument: {context, component}. */}}
{{- define "tutti.labels" -}}
{{ include "tutti.selectorLabels" . }}
app.kubernetes.io/managed-by: {{ .context.Release.Service }}
app.kubernetes.io/part-of: tutti
app.kubernetes.io/version: {{ .context.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .context.Chart.Name .context.Chart.Version | replace "+" "_" }}
{{- with .context.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A peer of a NetworkPolicy: pods of routers and steps, which the operator creates in the namespaces that it serves. */}}
{{- define "tutti.servedPods" -}}
{{- if eq .Values.scope.mode "Namespaces" -}}
namespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: In
      values:
        {{- toYaml .Values.scope.namespaces | nindent 8 }}
{{- else -}}
namespaceSelector: {}
{{- end }}
podSelector:
  matchLabels:
    app.kubernetes.io/managed-by: tutti-operator
  matchExpressions:
    - key: app.kubernetes.io/component
      operator: In
      values: [router, step]
{{- end -}}

{{/* An image. Argument: {context, image}. */}}
{{- define "tutti.image" -}}
{{- $repository := .image.repository -}}
{{- with .context.Values.global.imageRegistry -}}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository -}}
{{- end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .context.Chart.AppVersion .image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The image of steps with Python and TorchScript models. Those of another build than ours may have Python themselves. */}}
{{- define "tutti.pythonImage" -}}
{{- $image := .Values.step.pythonImage -}}
{{- if not $image.repository -}}
{{- $image = .Values.step.image -}}
{{- if regexMatch "(^|/)tutti/step$" $image.repository -}}
{{- $image = dict "repository" (printf "%s-python" $image.repository) "tag" $image.tag "digest" "" -}}
{{- end -}}
{{- end -}}
{{- include "tutti.image" (dict "context" . "image" $image) -}}
{{- end -}}

{{/*
An image of steps with CUDA; empty if there is none. Those of another build than ours may have CUDA themselves.
Argument: {context, name, repository}: the name of the value, and the repository of ours.
*/}}
{{- define "tutti.cudaImage" -}}
{{- $step := .context.Values.step -}}
{{- $image := index $step .name -}}
{{- $isOurs := and (regexMatch "(^|/)tutti/step$" $step.image.repository) (not $step.image.digest) -}}
{{- if eq .name "pythonCudaImage" -}}
{{- $isOurs = and $isOurs (regexMatch "^$|(^|/)tutti/step-python$" (default "" $step.pythonImage.repository)) -}}
{{- end -}}
{{- if and $isOurs (not $image.repository) -}}
{{- $image = dict "repository" (printf "%s%s" (trimSuffix "step" $step.image.repository) .repository) "tag" $step.image.tag "digest" "" -}}
{{- end -}}
{{- if $image.repository -}}
{{- include "tutti.image" (dict "context" .context "image" $image) -}}
{{- end -}}
{{- end -}}

{{/*
Which pods count as the same when pods spread. Those of a Deployment that a rollout replaces do not: it would leave the new ones together.
Argument: {context, component}.
*/}}
{{- define "tutti.samePods" -}}
labelSelector:
  matchLabels:
    {{- include "tutti.selectorLabels" . | nindent 4 }}
{{- if eq .component "operator" }}
matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end -}}

{{/*
Where pods run: on different nodes and in different zones where there are several with room. Zones are no second constraint, because the
scheduler leaves nodes without the label of zones out of all soft ones. Argument: {context, component, values}.
*/}}
{{- define "tutti.placement" -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
{{- if .values.affinity }}
  {{- toYaml .values.affinity | nindent 2 }}
{{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: topology.kubernetes.io/zone
          {{- include "tutti.samePods" . | nindent 10 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
topologySpreadConstraints:
{{- if .values.topologySpreadConstraints }}
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    {{- include "tutti.samePods" . | nindent 4 }}
{{- end }}
{{- end -}}

{{- define "tutti.imagePullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Not empty if namespaces assign user and groups, as those of OpenShift do; its `restricted-v2` refuses pods that name others. */}}
{{- define "tutti.namespaceAssignsUser" -}}
{{- $adapt := .Values.global.compatibility.openshift.adaptSecurityContext -}}
{{- if or (eq $adapt "force") (and (eq $adapt "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}yes{{- end -}}
{{- end -}}

{{/* Security context of a pod. Argument: {context, values}. */}}
{{- define "tutti.podSecurityContext" -}}
{{- if include "tutti.namespaceAssignsUser" .context -}}
{{ toYaml (omit .values "runAsUser" "runAsGroup" "fsGroup") }}
{{- else -}}
{{ toYaml .values }}
{{- end -}}
{{- end -}}

{{/* Ports of a NetworkPolicy that a service mesh adds, as a YAML list. Its pods and its control plane can be anywhere. */}}
{{- define "tutti.meshPorts" -}}
{{- range .Values.networkPolicy.meshPorts }}
- port: {{ int . }}
{{- end }}
{{- end -}}
