// needs: python
import type { NamedTensor, TensorValue } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { openBuiltins, type RunBuiltin } from '../testing/builtin-steps.ts'
import { createDice, type Dice, times } from '../testing/dice.ts'
import { type Evaluate, startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { equalTensors } from '../testing/random-tensors.ts'

/*
 * Steps that public ensembles write in Python, made of built-ins alone.
 */

/** A chain of built-ins: each step takes tensors of those before by `STEP.OUTPUT`, and the inputs by name. */
type Chain = readonly {
  readonly name: string
  readonly builtin: Readonly<Record<string, unknown>> & { readonly name: string }
  readonly inputMap: Readonly<Record<string, string>>
}[]

async function runChain(
  t: Test,
  run: RunBuiltin,
  { chain, inputs }: { readonly chain: Chain; readonly inputs: readonly NamedTensor[] },
): Promise<ReadonlyMap<string, TensorValue>> {
  const tensors = new Map<string, TensorValue>(inputs.map((tensor) => [tensor.name, tensor]))
  for (const { name: step, builtin, inputMap } of chain) {
    const feeding = Object.entries(inputMap).map(([name, from]) => {
      const tensor = tensors.get(from)
      if (tensor === undefined) throw new Error(`${step}: there is no ${from}`)
      return { ...tensor, name }
    })
    for (const output of await run(t, builtin, feeding))
      tensors.set(`${step}.${output.name}`, output)
  }
  return tensors
}

interface ChainTest {
  readonly chain: Chain
  readonly result: string
  readonly inputs: (dice: Dice) => readonly NamedTensor[]
  /** Sets `result`. */
  readonly python: string
  readonly absolute: number
}

const DETECTOR: ChainTest = {
  chain: [
    {
      name: 'fitted',
      builtin: { name: 'letterbox', width: 64, height: 64 },
      inputMap: { image: 'image' },
    },
    { name: 'first', builtin: { name: 'squeeze' }, inputMap: { input: 'head' } },
    { name: 'rows', builtin: { name: 'transpose' }, inputMap: { input: 'first.output' } },
    {
      name: 'parts',
      builtin: { name: 'split', sizes: [4, 6] },
      inputMap: { input: 'rows.output' },
    },
    {
      name: 'best',
      builtin: { name: 'nms', boxFormat: 'cxcywh', scoreThreshold: 0.5, maxOutputs: 20 },
      inputMap: { boxes: 'parts.output0', scores: 'parts.output1' },
    },
    {
      name: 'scaled',
      builtin: { name: 'scaleBoxes' },
      inputMap: {
        boxes: 'best.boxes',
        scale: 'fitted.scale',
        pad: 'fitted.pad',
        size: 'fitted.size',
      },
    },
    {
      name: 'classes',
      builtin: { name: 'cast', datatype: 'FP32' },
      inputMap: { input: 'best.classes' },
    },
    {
      name: 'marks',
      builtin: { name: 'stack', axis: 1 },
      inputMap: { input0: 'best.scores', input1: 'classes.output' },
    },
    {
      name: 'all',
      builtin: { name: 'concat', axis: 1 },
      inputMap: { input0: 'scaled.boxes', input1: 'marks.output' },
    },
  ],
  result: 'all.output',
  inputs: (dice) => [
    dice.tensor('image', 'UINT8', [dice.int(20, 90), dice.int(20, 90), 3]),
    dice.tensor('head', 'FP32', [1, 10, 60], { least: 0, most: 1 }),
  ],
  python: `
H, W = image.shape[:2]
r = min(64 / H, 64 / W)
left, top = [max(0, round((64 - round(side * r)) / 2 - 0.1)) for side in (W, H)]
rows = head[0].T
best, cls = rows[:, 4:].max(1), rows[:, 4:].argmax(1)
xy, wh = rows[:, :2], rows[:, 2:4]
boxes = np.concatenate([xy - wh / 2, xy + wh / 2], 1)
def iou(a, b):
    size = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    area = lambda x: (x[2] - x[0]) * (x[3] - x[1])
    inter = size[0] * size[1]
    return inter / (area(a) + area(b) - inter)
kept = []
for i in np.argsort(-best, kind='stable'):
    if best[i] > 0.5 and all(cls[k] != cls[i] or iou(boxes[i], boxes[k]) <= 0.45 for k in kept): kept.append(i)
kept = kept[:20]
back = (boxes[kept] - np.array([left, top] * 2)) / r
back = np.clip(back, 0, [W, H] * 2)
result = np.concatenate([back, best[kept, None], cls[kept, None]], 1).astype(np.float32)`,
  absolute: 1e-3,
}

const EMBEDDINGS: ChainTest = {
  chain: [
    {
      name: 'pooled',
      builtin: { name: 'meanPool' },
      inputMap: { embeddings: 'hidden', mask: 'mask' },
    },
    { name: 'unit', builtin: { name: 'l2Normalise' }, inputMap: { input: 'pooled.embedding' } },
  ],
  result: 'unit.output',
  inputs: (dice) => {
    const shape = [dice.int(1, 3), dice.int(1, 9)]
    const hidden = dice.tensor('hidden', 'FP32', [...shape, 16])
    return [hidden, dice.tensor('mask', 'INT64', shape, { least: 0, most: 2 })]
  },
  python: `
m = mask[..., None].astype(np.float32)
mean = (hidden * m).sum(1) / np.maximum(m.sum(1), 1e-9)
result = (mean / np.maximum(np.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)).astype(np.float32)`,
  absolute: 1e-5,
}

const CLASSIFIER: ChainTest = {
  chain: [
    {
      name: 'small',
      builtin: { name: 'resize', shortSide: 32 },
      inputMap: { image: 'image' },
    },
    {
      name: 'middle',
      builtin: { name: 'centerCrop', width: 28, height: 28 },
      inputMap: { image: 'small.image' },
    },
    {
      name: 'ready',
      builtin: {
        name: 'normalise',
        scale: 1 / 255,
        mean: [0.485, 0.456, 0.406],
        std: [0.229, 0.224, 0.225],
        layout: 'CHW',
      },
      inputMap: { image: 'middle.image' },
    },
    { name: 'batch', builtin: { name: 'expandDims' }, inputMap: { input: 'ready.image' } },
  ],
  result: 'batch.output',
  inputs: (dice) => [dice.tensor('image', 'UINT8', [dice.int(20, 90), dice.int(20, 90), 3])],
  python: `
H, W = image.shape[:2]
size = [max(1, int(side * 32 / min(H, W))) for side in (W, H)]
small = np.clip(np.rint(cv2.resize(image.astype(np.float32), size)), 0, 255)
top, left = round((size[1] - 28) / 2), round((size[0] - 28) / 2)
middle = small[top:top + 28, left:left + 28]
f = np.float32
ready = (middle.astype(f) * f(1 / 255) - np.array([0.485, 0.456, 0.406], f)) / np.array([0.229, 0.224, 0.225], f)
result = ready.transpose(2, 0, 1)[None]`,
  // One step of UINT8, where rounding goes the other way.
  absolute: 0.02,
}

async function compareChain(
  t: Test,
  { run, numpy }: { readonly run: RunBuiltin; readonly numpy: Evaluate },
  { chain, result, inputs, python, absolute }: ChainTest,
): Promise<void> {
  const dice = createDice()
  for (const i of times(6)) {
    const given = inputs(dice)
    const tensors = await runChain(t, run, { chain, inputs: given })
    const [want] = await numpy('result', given, python)
    equalTensors(t, tensors.get(result), want, `case ${i}`, { absolute })
  }
}

await t.test('chains of built-ins compute as Python does', { skip: WITHOUT_PYTHON }, async (t) => {
  const tools = { run: await openBuiltins(t), numpy: startNumpy(t, TEST_PYTHON ?? '') }
  await t.test('the head of a YOLO detector', (t) => compareChain(t, tools, DETECTOR))
  await t.test('hidden states to an embedding', (t) => compareChain(t, tools, EMBEDDINGS))
  await t.test('a picture for a classifier', (t) => compareChain(t, tools, CLASSIFIER))
})
