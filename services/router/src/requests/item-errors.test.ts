import { ServeError } from '@tutti/errors'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import { failure, floats, oneToOne, quiet, request, scriptedRouter } from '../testing/index.ts'

const ensemble = (step: object, from: string, shape = [-1, 1]) => {
  return {
    inputs: [{ name: 'IN', datatype: 'FP32', shape }],
    steps: [step],
    outputs: [{ name: 'OUT', datatype: 'FP32', shape, from }],
  }
}
const forEach = (input: string, more: object = {}) => {
  return { forEach: { items: { [input]: 'IN' }, maxItems: 100, maxParallel: 1, ...more } }
}
const again = { maxRetries: 1, retryOn: ['INTERNAL'], backoff: '1ms' }
const read = (model: string, more: object = {}) => {
  return ensemble(
    { name: 'read', modelRef: { name: `${model}-model` }, ...forEach('X'), ...more },
    'read.Y',
  )
}
const each = (name: string) => {
  return ensemble({ name: 'each', ensembleRef: { name }, ...forEach('IN') }, 'each.OUT')
}
/** A tensor of three dimensions, whose items are rows. */
const pages = (name: string) => {
  const step = { name: 'page', ensembleRef: { name }, ...forEach('IN') }
  return ensemble(step, 'page.OUT', [-1, -1, 1])
}
const one = (model: string, more: object = {}) => {
  const step = { name: 'ocr', modelRef: { name: `${model}-model` }, inputMap: { X: 'IN' }, ...more }
  return ensemble(step, 'ocr.Y', [-1])
}

const MANIFESTS = {
  row: read('row'),
  pairs: read('pairs'),
  retried: read('row', { mayRunTwice: true, retry: again }),
  fallback: read('row', { onError: { fallback: { modelRef: { name: 'other-model' } } } }),
  late: read('hangs', { timeout: '5ms' }),
  inner: one('row'),
  slow: one('hangs', { timeout: '5ms' }),
  nested: each('inner'),
  hanging: each('slow'),
  pages: pages('row'),
  deep: pages('nested'),
  looped: ensemble(
    {
      name: 'again',
      ensembleRef: { name: 'row' },
      inputMap: { IN: 'IN' },
      loop: { carry: { IN: 'again.OUT' }, maxIterations: 3 },
    },
    'again.OUT',
  ),
}

const run = (inputs: ReadonlyMap<string, Float32Array>) => {
  const values = [...(inputs.get('X') ?? [])]
  if (values.includes(13)) throw new ServeError('ENGINE_FAILED', 'it is 13')
  // Carried into the next iteration, it fails there.
  const next = values.map((value) => (value === 12 ? 13 : value))
  return new Map([['Y', floats('Y', next)]])
}

async function setup() {
  const { router } = await scriptedRouter({
    models: {
      'row-model': { config: oneToOne, run },
      'other-model': { config: oneToOne, run },
      'hangs-model': { config: oneToOne, run: () => new Promise(() => {}) },
      'pairs-model': {
        config: `max_batch_size: 2
          platform: "onnxruntime_onnx"
          input { name: "X" data_type: TYPE_FP32 dims: 1 }
          output { name: "Y" data_type: TYPE_FP32 dims: 1 }`,
        run,
      },
    },
    manifests: MANIFESTS,
  })
  return (name: string, values: readonly number[], shape: readonly number[]) => {
    const asked = request('IN', values, { inputs: [floats('IN', values, shape)] })
    return failure(responsesTo(router.resolve(name, ''), asked, quiet))
  }
}

/** Ensemble, values, the end of the error's text, and its details. */
const CASES: readonly (readonly [string, readonly number[], string, object])[] = [
  ['row', [1, 13], "step 'read[1]': it is 13", { step: 'read', item: '1' }],
  ['pairs', [1, 2, 3, 13, 5], "step 'read[2..3]': it is 13", { step: 'read', item: '2..3' }],
  ['retried', [13], "step 'read[0]': it is 13", { step: 'read', item: '0' }],
  [
    'fallback',
    [1, 1, 13],
    "step 'read[2]': it is 13",
    { step: 'read', item: '2', model: 'other-model', firstError: /step 'read\[2\]': it is 13/ },
  ],
  ['late', [1], "step 'read': no answer within its timeout of 5 ms", { step: 'read' }],
  [
    'nested',
    [1, 13],
    "step 'each[1]': in ensemble 'inner', it is 13",
    { ensemble: 'inner', step: 'ocr', within: '[1]', item: undefined },
  ],
  [
    'hanging',
    [1],
    "step 'each[0]': in ensemble 'slow', step 'ocr': no answer within its timeout of 5 ms",
    { step: 'ocr', within: '[0]' },
  ],
  [
    'looped',
    [1, 12],
    "step 'again', iteration 2: in ensemble 'row', step 'read[1]': it is 13",
    { ensemble: 'row', step: 'read', item: '1', within: '[2]' },
  ],
]

await t.test('an error says the step and the item, however deep it was', async (t) => {
  const ask = await setup()
  for (const [name, values, text, details] of CASES) {
    const error = await ask(name, values, [values.length, 1])
    t.equal(error.message, `in ensemble '${name}', ${text}`)
    t.match(error.details, details, name)
  }
  const page = await ask('pages', [1, 2, 3, 13], [2, 2, 1])
  t.match(page, {
    message: "in ensemble 'pages', step 'page[1]': in ensemble 'row', step 'read[1]': it is 13",
    details: { step: 'read', item: '1', within: '[1]' },
  })
  const deep = await ask('deep', [1, 2, 3, 4, 13, 6], [3, 2, 1])
  t.match(deep, {
    message:
      "in ensemble 'deep', step 'page[2]': in ensemble 'nested', step 'each[0]': in ensemble 'inner', it is 13",
    details: { ensemble: 'inner', step: 'ocr', within: '[2][0]', item: undefined },
  })
})
