import { z } from 'zod'
import { loadConfig } from '../flags/config.ts'

/**
 * Settings that every executable reads from the environment: OpenTelemetry's standard variables. Their SDK reads
 * OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES itself.
 */
export const TracingSettings = z.object({
  otlpEndpoint: z.string().optional().meta({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    description: 'Address of an OTLP/HTTP collector. Without it no spans are sent.',
  }),
  serviceName: z.string().default('tutti').meta({
    env: 'OTEL_SERVICE_NAME',
    description: 'Name of the service in traces.',
  }),
  sampleRatio: z.coerce.number().min(0).max(1).default(1).meta({
    env: 'OTEL_TRACES_SAMPLER_ARG',
    description: "Share of new traces that are sampled, 0 to 1. A caller's choice is kept.",
  }),
})
export type TracingSettings = z.infer<typeof TracingSettings>

/** Reads the tracing settings from environment variables. @throws ServeError SETTING_INVALID that names each refused variable. */
export function loadTracingSettings(
  env: Readonly<Record<string, string | undefined>>,
): TracingSettings {
  return loadConfig(TracingSettings, env)
}
