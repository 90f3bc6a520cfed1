import { createServer } from 'node:http'
import { until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { openClient } from './grpc-client.ts'
import { restInfer } from './rest-infer.ts'
import { serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'
import { fp32, row } from './tensors.ts'

t.setTimeout(600_000)

interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string }
}

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly attributes: readonly Attribute[]
  readonly status: { readonly code?: number }
}

interface Export {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[]
  }[]
}

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT_ID = 'b7ad6b7169203331'
const FAILED = 2

/** An OTLP/HTTP collector that keeps what it is sent. */
async function startCollector(t: Test): Promise<{ url: string; spans: Span[] }> {
  const spans: Span[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const sent = JSON.parse(Buffer.concat(chunks).toString()) as Export
      for (const { scopeSpans } of sent.resourceSpans) {
        for (const scope of scopeSpans) spans.push(...scope.spans)
      }
      response.setHeader('content-type', 'application/json')
      response.end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return { url: `http://127.0.0.1:${port}`, spans }
}

const attribute = (span: Span, key: string): string | number | undefined => {
  const value = span.attributes.find((one) => one.key === key)?.value
  return value?.stringValue ?? value?.intValue
}

const byText = (a: unknown, b: unknown): number => (String(a) < String(b) ? -1 : 1)

await t.test('one span per request, one per step below it, under the caller’s trace', async (t) => {
  const collector = await startCollector(t)
  const models = ['ens_chain', 'add_one_batch', 'ens_fail', 'identity_fp32_nonbatch', 'fail_at_run']
  const serving = await serve(t, {
    repositories: [await copyModels(t, models)],
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  })
  const traceparent = `00-${TRACE_ID}-${PARENT_ID}-01`
  const client = openClient(t, serving)
  const request = { modelVersion: '', id: '', parameters: new Map(), outputs: [] }
  await client.infer(
    { ...request, modelName: 'ens_chain', inputs: [row('X')] },
    { headers: { traceparent } },
  )
  await restInfer(serving, 'ens_chain', [row('X')], { headers: { traceparent } })
  await t.rejects(client.infer({ ...request, modelName: 'ens_fail', inputs: [fp32('x', [7, 7])] }))
  // The spans that wait are sent before the process ends.
  await serving.process.stop()
  await until('all spans came', () => collector.spans.length >= 9)

  const requests = collector.spans.filter((span) => span.name === 'infer ens_chain')
  t.equal(requests.length, 2)
  for (const span of requests) {
    t.match(span, { traceId: TRACE_ID, parentSpanId: PARENT_ID })
    const steps = collector.spans.filter((one) => one.parentSpanId === span.spanId)
    t.same(steps.map((one) => attribute(one, 'tutti.step')).toSorted(byText), [
      'add_one_batch#0',
      'add_one_batch#1',
    ])
    for (const step of steps) t.match(step, { traceId: TRACE_ID, name: 'execute add_one_batch' })
  }
  const failed = collector.spans.filter((span) => span.status.code === FAILED)
  t.same(failed.map((span) => span.name).toSorted(byText), [
    'execute fail_at_run',
    'infer ens_fail',
  ])
})
