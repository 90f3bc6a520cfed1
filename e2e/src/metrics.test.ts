import t from 'tap'
import { openClient } from './grpc-client.ts'
import { scrape } from './metrics.ts'
import { parseLine, serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'
import { fp32, row, type Tensor } from './tensors.ts'

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

await t.test('Triton’s series are there from the start, and count what happens', async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, MODELS)] })
  const before = await scrape(serving)
  for (const model of MODELS) {
    for (const name of COUNTERS) t.equal(before.value(name, { model, version: '1' }), 0, name)
    for (const reason of ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER']) {
      t.equal(before.value('nv_inference_request_failure', { model, reason }), 0, reason)
    }
  }
  const step = { ensemble: 'ens_chain', step: 'add_one_batch#1', model: 'add_one_batch' }
  t.equal(before.value('tutti_step_compute_seconds_count', step), 0)

  const client = openClient(t, serving)
  const infer = (modelName: string, inputs: readonly Tensor[]) =>
    client.infer({
      modelName,
      modelVersion: '',
      id: '',
      parameters: new Map(),
      inputs,
      outputs: [],
    })
  for (let i = 0; i < 3; i++) await infer('ens_chain', [row('X')])
  await t.rejects(infer('ens_fail', [fp32('x', [7, 7, 7])]))

  const after = await scrape(serving)
  const ensemble = { model: 'ens_chain', version: '1' }
  const model = { model: 'add_one_batch', version: '1' }
  t.equal(after.value('nv_inference_request_success', ensemble), 3)
  t.equal(after.value('nv_inference_request_success', model), 6)
  t.equal(after.value('nv_inference_count', model), 6)
  const infers = 'nv_inference_compute_infer_duration_us'
  t.equal(after.value(infers, ensemble), after.value(infers, model), 'an ensemble sums its steps')
  t.equal(
    after.value('nv_inference_request_failure', { model: 'fail_at_run', reason: 'BACKEND' }),
    1,
  )
  const twice = { model: 'ens_fail', reason: 'OTHER' }
  t.equal(after.value('nv_inference_request_failure', twice), 2, 'as Triton 2.51 counts')
  for (const part of ['queue', 'transfer', 'compute']) {
    t.equal(after.value(`tutti_step_${part}_seconds_count`, step), 3, part)
  }

  await serving.process.stop()
  const strange = serving.process.lines.filter((line) => parseLine(line)['message'] === undefined)
  t.same(strange, [], 'every line is JSON with a message')
})
