// needs: apiserver
import { withoutKube } from '@tutti/kube/testing'
import t from 'tap'
import { operatorArgsOf, render, template, type Values } from './helm.ts'

t.setTimeout(120_000)

const ENDPOINT = { 'telemetry.otlpEndpoint': 'http://c:4318' }

/** Finds what the operator is told of traces and of the console. */
async function toldOf(values: Values): Promise<readonly string[]> {
  const args = operatorArgsOf(await render(values))
  return args.filter((arg) => /^--(?:otlp|router-console)/.test(arg))
}

await t.test('a share in numbers or in text', { skip: withoutKube('helm') }, async (t) => {
  // helm reads --set telemetry.sampleRatio=0.1 as a text.
  for (const ratio of [0.1, '0.1']) {
    t.same(await toldOf({ ...ENDPOINT, 'telemetry.sampleRatio': ratio }), [
      '--otlp-endpoint=http://c:4318',
      '--otlp-sample-ratio=0.1',
    ])
  }
  const { err } = await template({ ...ENDPOINT, 'telemetry.sampleRatio': '1.5' })
  t.match(err, /at '\/telemetry\/sampleRatio'/)
})
