import t from 'tap'
import { ask, model, serve } from './testing/serve-manifests.ts'

const ensemble = (name: string, spec: string): string => `
apiVersion: tutti.dev/v1alpha1
kind: Ensemble
metadata: {name: ${name}}
spec:
${spec}`

const SCORES = '  inputs: [{name: scores, datatype: FP32, shape: [3]}]'
const LABELS = (file: string) => `
    - {name: best, builtin: {name: argmax}, inputMap: {input: norm.output}}
    - {name: name, builtin: {name: labelLookup, model: labels, file: ${file}}, inputMap: {indexes: best.output}}`

/** Ensembles of built-ins over a model that has a file with three labels. */
const MANIFESTS = [
  model('labels', 'pvc://fixtures/labels'),
  ensemble(
    'classes',
    `${SCORES}
  outputs: [{name: label, from: name.labels}, {name: share, from: norm.output}]
  steps:
    - {name: norm, builtin: {name: softmax}, inputMap: {input: scores}}${LABELS('labels.txt')}`,
  ),
  ensemble(
    'rows',
    `  maxBatchSize: 8
  inputs: [{name: scores, datatype: FP32, shape: [3]}]
  outputs: [{name: same, from: same.CLASSES}, {name: twice, from: twice.output}]
  steps:
    - {name: twice, builtin: {name: arithmetic, op: multiply, value: 2}, inputMap: {input: scores}}
    - {name: same, modelRef: {name: labels}, inputMap: {SCORES: twice.output}}`,
  ),
  ensemble(
    'each',
    `  inputs: [{name: scores, datatype: FP32, shape: [-1, 3]}]
  outputs: [{name: shares, from: norm.output}]
  steps: [{name: norm, builtin: {name: softmax}, forEach: {items: {input: scores}, maxItems: 9}}]`,
  ),
  ensemble(
    'halves',
    `  inputs: [{name: x, datatype: FP32, shape: [1]}]
  outputs: [{name: x, from: half.output}]
  steps:
    - name: half
      builtin: {name: arithmetic, op: multiply, value: 0.5}
      inputMap: {input: x}
      loop: {carry: {input: half.output}, until: 'tensors["half.output"][0] < 1.0', maxIterations: 9}`,
  ),
  ensemble(
    'rescued',
    `  inputs: [{name: data, datatype: UINT8, shape: [-1]}]
  outputs: [{name: size, from: decode.size}]
  steps:
    - name: decode
      builtin: {name: imageDecode}
      inputMap: {data: data}
      onError: {default: {size: {datatype: INT64, value: [0, 0]}}}`,
  ),
]

interface Answered {
  readonly outputs?: readonly { readonly name: string; shape: number[]; data: unknown[] }[]
  readonly error?: string
}

async function infer(
  port: number,
  name: string,
  [input, datatype, shape, data]: readonly [string, string, readonly number[], readonly number[]],
) {
  const inputs = [{ name: input, datatype, shape, data }]
  const [status, body] = await ask(port, `/v2/models/${name}/infer`, { inputs })
  const { outputs = [], error }: Answered = Object(body)
  return { status, error, outputs: outputs.map((one) => [one.name, one.shape, one.data]) }
}

const near = (got: unknown, wanted: readonly number[]): boolean =>
  Array.isArray(got) && wanted.every((one, i) => Math.abs(Number(got[i]) - one) < 1e-6)

await t.test('built-ins run as steps, beside models and beside their files', async (t) => {
  const { port } = await serve(t, MANIFESTS)
  const shares = [0, 1, 2].map((score) => Math.exp(score) / (1 + Math.exp(1) + Math.exp(2)))
  const { outputs } = await infer(port, 'classes', ['scores', 'FP32', [3], [0, 1, 2]])
  t.same(outputs[0], ['label', [1], ['bird']])
  t.ok(near(outputs[1]?.[2], shares))
  const rows = await infer(port, 'rows', ['scores', 'FP32', [2, 3], [1, 2, 3, 4, 5, 6]])
  t.same(rows.outputs, [
    ['same', [2, 3], [2, 4, 6, 8, 10, 12]],
    ['twice', [2, 3], [2, 4, 6, 8, 10, 12]],
  ])
  const each = await infer(port, 'each', ['scores', 'FP32', [2, 3], [0, 1, 2, 0, 1, 2]])
  t.same(each.outputs[0]?.[1], [2, 3])
  t.ok(near(each.outputs[0]?.[2], [...shares, ...shares]))
  t.same((await infer(port, 'halves', ['x', 'FP32', [1], [12]])).outputs, [['x', [1], [0.75]]])
  t.same((await infer(port, 'rescued', ['data', 'UINT8', [3], [1, 2, 3]])).outputs, [
    ['size', [2], [0, 0]],
  ])
})

await t.test('clients do not see what stands for built-ins', async (t) => {
  const { port } = await serve(t, MANIFESTS)
  const [, index] = await ask(port, '/v2/repository/index', {})
  const names = Array.from(Object(index), (one) => Object(one).name)
  t.same(names, ['classes', 'each', 'halves', 'labels', 'rescued', 'rows'])
  const [, statistics] = await ask(port, '/v2/models/stats')
  t.same(
    Array.from(Object(statistics).model_stats, (one) => Object(one).name),
    names,
  )
  const wanted = { error: "Request for unknown model: '/builtins' is not found" }
  t.same(await ask(port, '/v2/models/%2Fbuiltins'), [404, wanted])
  t.same(await ask(port, '/v2/models/%2Fbuiltins/infer', { inputs: [] }), [404, wanted])
})

await t.test('a file that a model lacks is told at the start', async (t) => {
  const lost = ensemble(
    'lost',
    `${SCORES}
  outputs: [{name: label, from: name.labels}]
  steps:
    - {name: norm, builtin: {name: softmax}, inputMap: {input: scores}}${LABELS('names.txt')}`,
  )
  const manifests = [model('labels', 'pvc://fixtures/labels'), lost]
  await t.rejects(serve(t, manifests), {
    message:
      /steps\[2\]\(name\)\.builtin\.file: got 'names\.txt', want a file in the folder of 'labels'/,
  })
})
