import t from 'tap'
import { loadTracingSettings, toTracingOptions } from './tracing-settings.ts'

const options = (env: Record<string, string>) => toTracingOptions(loadTracingSettings(env))

await t.test('nothing set means no endpoint', async (t) => {
  t.match(options({}), { endpoint: undefined, serviceName: 'tutti', headers: {}, sampleRatio: 1 })
})

await t.test('the standard variables are read', async (t) => {
  const got = options({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x, tenant=a=b',
    OTEL_SERVICE_NAME: 'ours',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
  })
  t.match(got, {
    endpoint: 'http://collector:4318',
    serviceName: 'ours',
    headers: { authorization: 'Bearer x', tenant: 'a=b' },
    sampleRatio: 0.25,
  })
})

await t.test('refused values are named, and a credential is not printed', async (t) => {
  for (const [name, value] of [
    ['OTEL_EXPORTER_OTLP_HEADERS', 'secret'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a=%E0%A4%A'],
    ['OTEL_TRACES_SAMPLER_ARG', '2'],
  ] as const) {
    let message = ''
    try {
      options({ [name]: value })
    } catch (error) {
      message = error instanceof Error ? error.message : ''
    }
    t.ok(message.includes(name), `${name}=${value}`)
    t.notOk(message.includes('secret'))
  }
})
