import { ServeError } from '@tutti/errors'
import { z } from 'zod'
import { loadConfig, secretSetting } from '../config.ts'
import type { TracingOptions } from '../otlp-tracing.ts'

/** What every executable reads from the environment: OpenTelemetry's standard variables. */
export const TracingSettings = z.object({
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
export type TracingSettings = z.infer<typeof TracingSettings>

/** @throws ServeError SETTING_INVALID that names each refused variable. */
export function loadTracingSettings(
  env: Readonly<Record<string, string | undefined>>,
): TracingSettings {
  return loadConfig(TracingSettings, env)
}

/** @throws ServeError SETTING_INVALID if the headers are no key=value pairs. */
export function toTracingOptions(settings: TracingSettings): TracingOptions {
  return {
    endpoint: settings.otlpEndpoint,
    serviceName: settings.serviceName,
    headers: toHeaders(settings.otlpHeaders?.reveal() ?? ''),
    sampleRatio: settings.sampleRatio,
  }
}

/** OpenTelemetry's form: `key=value` with commas between, values percent-encoded. */
function toHeaders(text: string): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  for (const pair of text.split(',').filter((part) => part.trim() !== '')) {
    const at = pair.indexOf('=')
    const name = pair.slice(0, at).trim()
    if (at < 1 || name === '') throw refusal()
    headers[name] = decode(pair.slice(at + 1).trim())
  }
  return headers
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (error) {
    throw refusal(error)
  }
}

/** Says nothing of the value: it may be a credential. */
function refusal(cause?: unknown): ServeError {
  return new ServeError(
    'SETTING_INVALID',
    'OTEL_EXPORTER_OTLP_HEADERS: want key=value pairs with commas between them, values percent-encoded',
    { details: { field: 'OTEL_EXPORTER_OTLP_HEADERS' }, cause },
  )
}
