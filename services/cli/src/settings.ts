import { loadConfig, secretSetting } from '@tutti/chassis'
import { z } from 'zod'

/** What the command reads from the environment: OpenTelemetry's standard variables. */
export const Settings = z.object({
  otlpEndpoint: z.string().optional().meta({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    description: 'Base of an OTLP/HTTP collector; without it no spans are made.',
  }),
  otlpHeaders: secretSetting.optional().meta({
    env: 'OTEL_EXPORTER_OTLP_HEADERS',
    description: 'key=value pairs with commas between them, sent with each export.',
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
export type Settings = z.infer<typeof Settings>

export function loadSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  return loadConfig(Settings, env)
}
