import { z } from 'zod'
import { loadConfig } from '../config.ts'

/** What every executable reads from the environment: OpenTelemetry's standard variables. Their SDK reads OTEL_EXPORTER_OTLP_HEADERS itself. */
export const TracingSettings = z.object({
  otlpEndpoint: z.string().optional().meta({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    description: 'Base of an OTLP/HTTP collector; without it no spans are made.',
  }),
  serviceName: z.string().default('tutti').meta({
    env: 'OTEL_SERVICE_NAME',
    description: 'Name of the service in traces.',
  }),
  sampleRatio: z.coerce.number().min(0).max(1).default(1).meta({
    env: 'OTEL_TRACES_SAMPLER_ARG',
    description: 'Share of the traces that begin here, 0 to 1; a caller’s choice is kept.',
  }),
})
export type TracingSettings = z.infer<typeof TracingSettings>

/** @throws ServeError SETTING_INVALID that names each refused variable. */
export function loadTracingSettings(
  env: Readonly<Record<string, string | undefined>>,
): TracingSettings {
  return loadConfig(TracingSettings, env)
}
