import t from 'tap'
import { ask, model, serve } from './testing/serve-manifests.ts'

const ensemble = (name: string, spec: string): string => `
apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: {name: ${name}}
spec:
${spec}`

const SEVENS = Array.from({ length: 16 }, () => 7)

const IO = (shape: string, output = 'read.Y'): string => `
  inputs: [{name: X, datatype: FP32, shape: ${shape}}]
  outputs: [{name: "Y", from: ${output}}]`

/** Ensembles over a model of batches of up to eight, which adds one to sixteen numbers, and over one that fails. */
const MANIFESTS = [
  model('add-one-batch', 'pvc://fixtures/add_one_batch'),
  model('add-one', 'pvc://fixtures/add_one'),
  model('fail-at-run', 'pvc://fixtures/fail_at_run'),
  ensemble(
    'pair',
    `  maxBatchSize: 8
  inputs: [{name: X, datatype: FP32, shape: [16]}]
  outputs: [{name: "Y", from: b.Y}]
  steps:
    - {name: a, modelRef: {name: add_one_batch}, inputMap: {X: X}}
    - {name: b, modelRef: {name: add_one_batch}, inputMap: {X: a.Y}}`,
  ),
  ensemble(
    'each',
    `${IO('[-1,16]')}
  steps: [{name: read, modelRef: {name: add_one_batch}, forEach: {items: {X: X}, maxItems: 64}}]`,
  ),
  ensemble(
    'chain',
    `${IO('[-1,16]')}
  steps: [{name: read, ensembleRef: {name: pair}, forEach: {items: {X: X}, maxItems: 64}}]`,
  ),
  ensemble(
    'failing',
    `
  inputs: [{name: X, datatype: FP32, shape: [-1,16]}]
  outputs: [{name: "Y", from: read.y}, {name: failed, from: read.failed}]
  steps:
    - name: read
      modelRef: {name: fail_at_run}
      forEach:
        items: {x: X}
        maxItems: 64
        onItemError: {default: {"y": {datatype: FP32, value: [${SEVENS.join()}]}}}`,
  ),
  ensemble(
    'fatal',
    `${IO('[-1,16]', 'read.y')}
  steps: [{name: read, modelRef: {name: fail_at_run}, forEach: {items: {x: X}, maxItems: 64}}]`,
  ),
  ensemble(
    'again',
    `${IO('[16]')}
  steps:
    - name: read
      modelRef: {name: add_one_batch}
      inputMap: {X: X}
      loop:
        carry: {X: read.Y}
        until: 'tensors["read.Y"][0] >= parameters["enough"]'
        maxIterations: 20`,
  ),
]

interface Answered {
  readonly outputs?: readonly { readonly name: string; shape: number[]; data: unknown[] }[]
  readonly error?: string
}

/** Sends rows of sixteen numbers. */
async function infer(port: number, name: string, shape: readonly number[], parameters = {}) {
  const size = shape.reduce((product, extent) => product * extent, 1)
  const data = Array.from({ length: size }, (_, i) => i % 1000)
  const inputs = [{ name: 'X', datatype: 'FP32', shape, data }]
  const [status, body] = await ask(port, `/v2/models/${name}/infer`, { inputs, parameters })
  const { outputs = [], error }: Answered = Object(body)
  return { status, error, data, outputs: outputs.map((one) => [one.name, one.shape, one.data]) }
}

await t.test('items are gathered, in as many executions as there are batches', async (t) => {
  const { port, metricsPort } = await serve(t, MANIFESTS)
  const executions = async () => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    const found = /^nv_inference_exec_count\{model="add_one_batch",version="1"\} (\d+)$/m.exec(text)
    return Number(found?.[1])
  }
  for (const rows of [0, 1, 20, 64]) {
    const before = await executions()
    const { outputs, data } = await infer(port, 'each', [rows, 16])
    t.same(outputs, [['Y', [rows, 16], data.map((x) => x + 1)]])
    t.equal((await executions()) - before, Math.ceil(rows / 8))
    const chain = await infer(port, 'chain', [rows, 16])
    t.same(chain.outputs, [['Y', [rows, 16], data.map((x) => x + 2)]])
  }
  t.match(await infer(port, 'each', [65, 16]), {
    status: 400,
    error: "in ensemble 'each', step 'read': got 65 items, want at most 64 (maxItems)",
  })
  // It fails for a row that does not begin with 0 or 16.
  const { outputs, data } = await infer(port, 'failing', [3, 16])
  t.same(outputs, [
    ['Y', [3, 16], [...data.slice(0, 32), ...SEVENS]],
    ['failed', [3], [false, false, true]],
  ])
  t.match(await infer(port, 'fatal', [3, 16]), {
    status: 500,
    error: /^in ensemble 'fatal', step 'read\[2\]': /,
  })
  for (const [enough, times] of [
    [3, 3],
    [100, 20],
  ] as const) {
    const { outputs, data } = await infer(port, 'again', [16], { enough })
    t.same(
      outputs[0]?.[2],
      data.map((x) => x + times),
    )
  }
})
