import type { TracingOptions } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Settings } from './settings.ts'

/** @throws ServeError SETTING_INVALID if the headers are no key=value pairs. */
export function toTracingOptions(settings: Settings): TracingOptions {
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
