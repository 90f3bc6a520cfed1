import t from 'tap'
import { checkParts, startCollector } from './collector.ts'
import { openClient } from './grpc-client.ts'
import { scrape } from './metrics.ts'
import { restInfer } from './rest-infer.ts'
import { parseLine, serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'
import { fp32, row } from './tensors.ts'

t.setTimeout(600_000)

const MODELS = ['ens_chain', 'add_one_batch', 'ens_fail', 'identity_fp32_nonbatch', 'fail_at_run']
const COUNTERS = [
  'nv_inference_request_success',
  'nv_inference_count',
  'nv_inference_exec_count',
  'nv_inference_request_duration_us',
  'nv_inference_queue_duration_us',
  'nv_inference_compute_input_duration_us',
  'nv_inference_compute_infer_duration_us',
  'nv_inference_compute_output_duration_us',
]

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT_ID = 'b7ad6b7169203331'
const FAILED = 2

await t.test('what a server tells of its requests', async (t) => {
  const collector = await startCollector(t)
  const serving = await serve(t, {
    repositories: [await copyModels(t, MODELS)],
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  })
  const before = await scrape(serving)
  const client = openClient(t, serving)
  const headers = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01` }
  const chain = { modelName: 'ens_chain', inputs: [row('X')] }
  const failing = [fp32('x', [7, 7, 7])]
  await client.infer(chain, { headers })
  await client.infer(chain)
  await restInfer(serving, 'ens_chain', chain.inputs, { headers })
  const error: unknown = await client
    .infer({ modelName: 'ens_fail', inputs: failing })
    .catch((thrown: unknown) => thrown)

  await t.test('Triton’s series are there from the start, and count what happens', async (t) => {
    for (const model of MODELS) {
      for (const name of COUNTERS) t.equal(before.value(name, { model, version: '1' }), 0, name)
      for (const reason of ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER']) {
        t.equal(before.value('nv_inference_request_failure', { model, reason }), 0, reason)
      }
    }
    const step = { ensemble: 'ens_chain', step: 'add_one_batch#1', model: 'add_one_batch' }
    t.equal(before.value('tutti_step_compute_seconds_count', step), 0)
    const after = await scrape(serving)
    const ensemble = { model: 'ens_chain', version: '1' }
    const model = { model: 'add_one_batch', version: '1' }
    t.equal(after.value('nv_inference_request_success', ensemble), 3)
    t.equal(after.value('nv_inference_request_success', model), 6)
    t.equal(after.value('nv_inference_count', model), 6)
    const infers = 'nv_inference_compute_infer_duration_us'
    t.equal(after.value(infers, ensemble), after.value(infers, model), 'an ensemble sums its steps')
    const backend = { model: 'fail_at_run', reason: 'BACKEND' }
    t.equal(after.value('nv_inference_request_failure', backend), 1)
    const twice = { model: 'ens_fail', reason: 'OTHER' }
    t.equal(after.value('nv_inference_request_failure', twice), 2, 'as Triton 2.51 counts')
    for (const part of ['queue', 'transfer', 'compute']) {
      t.equal(after.value(`tutti_step_${part}_seconds_count`, step), 3, part)
    }
  })

  await t.test('the error of a step says where, in trailers and in headers', async (t) => {
    const where = { ensemble: 'ens_fail', step: 'fail_at_run', model: 'fail_at_run', attempt: '1' }
    t.match(error, {
      code: 'INTERNAL',
      reason: 'ENGINE_FAILED',
      message: /^in ensemble 'ens_fail', onnx runtime error/,
      details: { ...where, replica: String },
    })
    const answer = await restInfer(serving, 'ens_fail', failing)
    t.equal(answer.status, 500)
    const fields = Object.entries({ reason: 'ENGINE_FAILED', ...where })
    const wanted = fields.map(([name, value]) => [`tutti-error-${name}`, value])
    t.match(answer.headers, Object.fromEntries(wanted))
    t.match(answer.json(), { error: /^in ensemble 'ens_fail', onnx runtime error/ })
  })

  // Telemetry that waits to be sent is sent before the process ends.
  await serving.process.stop()
  const strange = serving.process.lines.filter((line) => parseLine(line)['message'] === undefined)
  t.same(strange, [], 'every line is JSON with a message')

  await t.test(
    'a span for the request, one for each step below it and for its parts, in the caller’s trace',
    async (t) => {
      // Three chains with two steps each, and two failures with two steps each; all before the process ended.
      const calls = collector.spans.filter(({ name }) => /^(?:infer|execute) /.test(name))
      t.equal(calls.length, 15)
      const traced = collector.spans.filter(
        ({ name, traceId }) => name === 'infer ens_chain' && traceId === TRACE_ID,
      )
      t.equal(traced.length, 2)
      for (const span of traced) {
        t.equal(span.parentSpanId, PARENT_ID)
        const steps = collector.spans.filter((one) => one.parentSpanId === span.spanId)
        const keyed = steps.map(({ attributes }) =>
          attributes.find(({ key }) => key === 'tutti.step'),
        )
        for (const name of ['add_one_batch#0', 'add_one_batch#1']) {
          t.ok(
            keyed.some((one) => one?.value.stringValue === name),
            name,
          )
        }
        for (const step of steps) {
          t.match(step, { traceId: TRACE_ID, name: 'execute add_one_batch' })
          checkParts(t, step, collector.spans)
        }
      }
      const failed = collector.spans.filter((span) => span.status.code === FAILED)
      const names = ['execute fail_at_run', 'infer ens_fail']
      t.same(
        failed.map(({ name }) => name).toSorted(),
        names.flatMap((name) => [name, name]),
      )
    },
  )
})
