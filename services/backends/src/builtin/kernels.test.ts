import { BUILTINS, type FeedingTensor, parseBuiltin, toModelConfig } from '@tutti/builtins'
import { DATATYPES, type Datatype, isDatatype } from '@tutti/tensor'
import t from 'tap'
import { openEngine } from '../testing/builtin-steps.ts'

/** Options and dims of inputs, for each built-in of ONNX operators. An input with a datatype has that one alone. */
const SAMPLES: Readonly<
  Record<
    string,
    readonly [options: object, inputs: Readonly<Record<string, readonly number[] | FeedingTensor>>]
  >
> = {
  apply: [{ function: 'abs' }, { input: [2, 3] }],
  argmax: [{}, { input: [2, 3] }],
  arithmetic: [{ op: 'add' }, { input: [2, 3], other: [3] }],
  cast: [{ datatype: 'FP32' }, { input: [2, 3] }],
  centerCrop: [{ width: 1, height: 1 }, { image: [4, 4, 3] }],
  clip: [{ min: 0, max: 1 }, { input: [2, 3] }],
  compare: [{ op: 'equal' }, { input: [2, 3], other: [3] }],
  concat: [{}, { input0: [2, 3], input1: [2, 3] }],
  convertBoxes: [{ from: 'xywh', to: 'xyxy' }, { boxes: [2, 4] }],
  crop: [{}, { image: [4, 4, 3], box: { datatype: 'INT64', dims: [4] } }],
  expandDims: [{}, { input: [2, 3] }],
  l2Normalise: [{}, { input: [2, 3] }],
  letterbox: [{ width: 8, height: 8 }, { image: [4, 4, 3] }],
  logical: [{ op: 'and' }, { input: [2, 3], other: [3] }],
  meanPool: [{}, { embeddings: { datatype: 'FP32', dims: [2, 3] }, mask: [2] }],
  nms: [{}, { boxes: [2, 4], scores: [2, 3] }],
  normalise: [{ mean: [1, 2, 3], layout: 'CHW' }, { image: [4, 4, 3] }],
  pad: [{ widths: [[1, 1]] }, { input: [2, 3] }],
  padToMultiple: [{ multipleOf: 8 }, { image: [4, 4, 3] }],
  positions: [{}, { input: [2, 3] }],
  reduce: [{ op: 'sum' }, { input: [2, 3] }],
  reshape: [{ shape: [3, 2] }, { input: [2, 3] }],
  resize: [{ width: 8, height: 8 }, { image: [4, 4, 3] }],
  rotate: [{ degrees: 90 }, { image: [4, 4, 3], turns: { datatype: 'INT64', dims: [1] } }],
  scaleBoxes: [{}, { boxes: [2, 4], scale: { datatype: 'FP32', dims: [2] } }],
  select: [{}, { input: [2, 3], mask: { datatype: 'BOOL', dims: [2] } }],
  shapeOf: [{}, { input: [2, 3] }],
  sigmoid: [{}, { input: [2, 3] }],
  slice: [{ index: '0, ::-1' }, { input: [2, 3] }],
  softmax: [{}, { input: [2, 3] }],
  split: [{ sizes: [1, 2] }, { input: [2, 3] }],
  squeeze: [{}, { input: [1, 3] }],
  stack: [{}, { input0: [2, 3], input1: [2, 3] }],
  take: [{}, { input: [2, 3], indices: { datatype: 'INT64', dims: [2] } }],
  threshold: [{ threshold: 0 }, { input: [2, 3] }],
  topK: [{ k: 2 }, { input: [2, 3] }],
  transpose: [{}, { input: [2, 3] }],
  where: [{}, { condition: { datatype: 'BOOL', dims: [3] }, input: [2, 3], other: [3] }],
}

const ALL = Object.keys(DATATYPES).filter(isDatatype)

await t.test('the runtime has kernels for every datatype that a signature accepts', async (t) => {
  const load = await openEngine(t)
  const graphs = BUILTINS.filter(({ kind }) => kind === 'onnx').map(({ name }) => name)
  t.same(Object.keys(SAMPLES), graphs.toSorted(), 'every built-in has a sample')
  for (const [name, [options, dims]] of Object.entries(SAMPLES)) {
    const accepted: Datatype[] = []
    for (const datatype of ALL) {
      const inputs = Object.entries(dims).map(([input, one]) => {
        return [input, 'dims' in one ? one : { datatype, dims: one }] as [string, FeedingTensor]
      })
      const { step } = parseBuiltin({ ...options, name })
      if (step === undefined) throw new Error(`the sample of ${name} cannot be read`)
      const { config } = toModelConfig(step, { modelName: name, inputs: new Map(inputs) })
      if (config === undefined) continue
      accepted.push(datatype)
      const model = await load(config)
      await model.close()
    }
    t.ok(accepted.length > 0, `${name}: ${accepted.join(', ')}`)
  }
})
