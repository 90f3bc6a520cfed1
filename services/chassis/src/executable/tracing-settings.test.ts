import t from 'tap'
import { loadTracingSettings } from './tracing-settings.ts'

await t.test('nothing set means no endpoint', async (t) => {
  t.match(loadTracingSettings({}), {
    otlpEndpoint: undefined,
    serviceName: 'tutti',
    sampleRatio: 1,
  })
})

await t.test('the standard variables are read', async (t) => {
  const got = loadTracingSettings({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_SERVICE_NAME: 'ours',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
  })
  t.match(got, {
    otlpEndpoint: 'http://collector:4318',
    serviceName: 'ours',
    sampleRatio: 0.25,
  })
})

await t.test('a refused value is named', async (t) => {
  t.throws(() => loadTracingSettings({ OTEL_TRACES_SAMPLER_ARG: '2' }), {
    reason: 'SETTING_INVALID',
    message: /OTEL_TRACES_SAMPLER_ARG/,
  })
})
