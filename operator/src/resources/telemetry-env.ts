import type { Container } from '@tutti/kube'

/** The collector to which routers and steps send their spans. */
export interface TelemetrySettings {
  /** Base URL of the collector, OTLP over HTTP. */
  readonly endpoint: string
  /** Share of the traces that begin in a router or step, 0 to 1. */
  readonly sampleRatio: string
  /** Name of a Secret in the pods' namespace whose key `headers` holds headers for the collector. */
  readonly headersSecret: string | undefined
}

type Env = NonNullable<Container['env']>

const POD_NAME = {
  name: 'POD_NAME',
  valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } },
}

/**
 * Builds OpenTelemetry's environment variables for a container; none without a collector. A `podTemplate` may replace them. Pods
 * start even if the Secret of headers is missing: the collector may then refuse the spans, and the pods log that.
 */
export function telemetryEnv(
  telemetry: TelemetrySettings | undefined,
  { service, namespace }: { readonly service: string; readonly namespace: string },
): Env {
  if (telemetry === undefined) return []
  const { endpoint, sampleRatio, headersSecret } = telemetry
  return [
    POD_NAME,
    { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: endpoint },
    ...(headersSecret === undefined ? [] : [headersOf(headersSecret)]),
    {
      name: 'OTEL_RESOURCE_ATTRIBUTES',
      value: `k8s.namespace.name=${namespace},k8s.pod.name=$(${POD_NAME.name})`,
    },
    { name: 'OTEL_SERVICE_NAME', value: service },
    { name: 'OTEL_TRACES_SAMPLER_ARG', value: sampleRatio },
  ]
}

function headersOf(name: string): Env[number] {
  const secretKeyRef = { name, key: 'headers', optional: true }
  return { name: 'OTEL_EXPORTER_OTLP_HEADERS', valueFrom: { secretKeyRef } }
}
