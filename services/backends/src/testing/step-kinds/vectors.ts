import { bytesTensor, type StepKind, step } from './step-kind.ts'

const POOLINGS = ['mean', 'cls', 'max']

/** Steps that compute with vectors and single numbers. */
export const VECTOR_KINDS: readonly StepKind[] = [
  {
    rows: [12],
    takes: 'INT32[1], FP32[100,4], FP32[100], INT32[100]',
    makes: 'FP32[4,2]',
    does: 'middle of the best box of each of four classes, such as the corners of a card',
    expressed: {
      steps: [
        step('numbers', 'positions', { input: 'scores' }),
        step('small', 'cast', { input: 'numbers.output' }, { datatype: 'INT32' }),
        step('real', 'compare', { input: 'small.output', other: 'count' }, { op: 'less' }),
        step(
          'same',
          'compare',
          { other: 'classes' },
          { op: 'equal' },
          {
            input: { datatype: 'INT32', shape: [4, 1], value: [0, 1, 2, 3] },
          },
        ),
        step('both', 'logical', { input: 'same.output', other: 'real.output' }, { op: 'and' }),
        step('own', 'where', { condition: 'both.output', input: 'scores' }, { value: -1 }),
        step('best', 'argmax', { input: 'own.output' }),
        step('middles', 'convertBoxes', { boxes: 'boxes' }, { from: 'xyxy', to: 'cxcywh' }),
        step('points', 'slice', { input: 'middles.boxes' }, { index: ':, :2' }),
        step('corners', 'take', { input: 'points.output', indices: 'best.output' }),
      ],
      outputs: ['corners.output'],
      draw: ({ dice }) => [
        dice.tensor('count', 'INT32', [1], { least: 0, most: 101 }),
        dice.tensor('boxes', 'FP32', [100, 4], { least: 0, most: 640 }),
        dice.tensor('scores', 'FP32', [100], { least: 0, most: 1 }),
        dice.tensor('classes', 'INT32', [100], { least: 0, most: 5 }),
      ],
      python: `
corners = np.zeros((4, 2), np.float32)
for k in range(4):
    best, most = 0, -1.0
    for i in range(count[0]):
        if classes[i] == k and scores[i] > most: best, most = i, scores[i]
    corners[k] = (boxes[best, :2] + boxes[best, 2:]) / 2
out = (corners,)`,
      tolerance: { absolute: 1e-3 },
    },
  },
  {
    rows: [20],
    takes: 'FP32[1000]',
    makes: 'FP32[5,2]',
    does: 'the five best classes with their probabilities',
    expressed: {
      steps: [
        step('shares', 'softmax', { input: 'scores' }),
        step('top', 'topK', { input: 'shares.output' }, { k: 5 }),
        step('classes', 'cast', { input: 'top.indices' }, { datatype: 'FP32' }),
        step('rows', 'stack', { input0: 'classes.output', input1: 'top.values' }, { axis: 1 }),
      ],
      outputs: ['rows.output'],
      draw: ({ dice }) => [dice.tensor('scores', 'FP32', [1000])],
      python: `
e = np.exp(scores - scores.max())
shares = e / e.sum()
top = np.argsort(-shares, kind='stable')[:5]
out = (np.stack([top.astype(np.float32), shares[top]], 1),)`,
      tolerance: { absolute: 1e-6 },
    },
  },
  {
    rows: [22],
    takes: 'FP32[-1,-1], INT64[-1], STRING[1], BOOL[1]',
    makes: 'FP32[-1]',
    does: 'one embedding of those of tokens: the mean, the first or the greatest, as the request asks, of length 1 on request',
    expressed: {
      steps: [
        step('mean', 'meanPool', { embeddings: 'hidden', mask: 'mask' }),
        step('first', 'slice', { input: 'hidden' }, { index: '0' }),
        step('is-token', 'compare', { input: 'mask' }, { op: 'greater', value: 0 }),
        step('column', 'expandDims', { input: 'is-token.output' }, { axis: 1 }),
        step('tokens', 'where', { condition: 'column.output', input: 'hidden' }, { value: -1e9 }),
        step('most', 'reduce', { input: 'tokens.output' }, { op: 'max', axes: [0] }),
        step('all', 'stack', {
          input0: 'mean.embedding',
          input1: 'first.output',
          input2: 'most.output',
        }),
        step('kind', 'labelIndex', { labels: 'pooling' }, { labels: POOLINGS }),
        step('row', 'take', { input: 'all.output', indices: 'kind.indexes' }),
        step('plain', 'squeeze', { input: 'row.output' }),
        step('unit', 'l2Normalise', { input: 'plain.output' }),
        step('chosen', 'where', {
          condition: 'isUnit',
          input: 'unit.output',
          other: 'plain.output',
        }),
      ],
      outputs: ['chosen.output'],
      draw: ({ dice }) => {
        const [count, width] = [dice.int(1, 9), dice.int(1, 12)]
        return [
          dice.tensor('hidden', 'FP32', [count, width]),
          dice.tensor('mask', 'INT64', [count], { least: 0, most: 2 }),
          bytesTensor('pooling', [1], [dice.pick(...POOLINGS)]),
          dice.tensor('isUnit', 'BOOL', [1]),
        ]
      },
      python: `
m = mask[:, None].astype(np.float32)
plain = {
    b'mean': (hidden * m).sum(0) / max(m.sum(), 1e-9),
    b'cls': hidden[0],
    b'max': np.where(m > 0, hidden, -1e9).max(0),
}[pooling[0]].astype(np.float32)
out = (plain / max(np.linalg.norm(plain), 1e-12) if isUnit[0] else plain,)`,
      tolerance: { absolute: 1e-5, relative: 1e-5 },
    },
  },
  {
    rows: [24],
    takes: 'FP32[1]',
    makes: 'FP32[1]',
    does: 'a prediction back in its unit: y * scale + mean',
    isReading: true,
    expressed: {
      steps: [
        step('scaled', 'arithmetic', { input: 'y' }, { op: 'multiply', value: 7.8 }),
        step('unit', 'arithmetic', { input: 'scaled.output' }, { op: 'add', value: 23.5 }),
      ],
      outputs: ['unit.output'],
      draw: ({ dice }) => [dice.tensor('y', 'FP32', [1])],
      python: 'out = (y * np.float32(7.8) + np.float32(23.5),)',
    },
  },
  {
    rows: [25],
    takes: 'FP32[1], FP32[1], FP32[1], FP32[1], FP32[1]',
    makes: 'FP32[13]',
    does: 'features: three numbers standardised, two codes as 6 and 4 zeros and ones',
    isReading: true,
    expressed: {
      steps: [
        step('numbers', 'concat', { input0: 'a', input1: 'b', input2: 'c' }),
        step(
          'around',
          'arithmetic',
          { input: 'numbers.output' },
          { op: 'subtract' },
          {
            other: { datatype: 'FP32', value: [1.5, 0, -2] },
          },
        ),
        step(
          'unit',
          'arithmetic',
          { input: 'around.output' },
          { op: 'divide' },
          {
            other: { datatype: 'FP32', value: [3, 0.5, 2] },
          },
        ),
        step(
          'is-six',
          'compare',
          { input: 'd' },
          { op: 'equal' },
          {
            other: { datatype: 'FP32', value: [0, 1, 2, 3, 4, 5] },
          },
        ),
        step(
          'is-four',
          'compare',
          { input: 'e' },
          { op: 'equal' },
          {
            other: { datatype: 'FP32', value: [0, 1, 2, 3] },
          },
        ),
        step('six', 'cast', { input: 'is-six.output' }, { datatype: 'FP32' }),
        step('four', 'cast', { input: 'is-four.output' }, { datatype: 'FP32' }),
        step('all', 'concat', {
          input0: 'unit.output',
          input1: 'six.output',
          input2: 'four.output',
        }),
      ],
      outputs: ['all.output'],
      draw: ({ dice }) => [
        ...['a', 'b', 'c'].map((name) => dice.tensor(name, 'FP32', [1])),
        ...(['d', 'e'] as const).map((name, i) => {
          const code = dice.tensor(name, 'UINT8', [1], { least: 0, most: i === 0 ? 6 : 4 })
          return { ...code, datatype: 'FP32', data: toFloats(code.data) } as const
        }),
      ],
      python: `
unit = (np.concatenate([a, b, c]) - np.array([1.5, 0, -2], np.float32)) / np.array([3, 0.5, 2], np.float32)
out = (np.concatenate([unit, np.eye(6, dtype=np.float32)[int(d[0])], np.eye(4, dtype=np.float32)[int(e[0])]]),)`,
    },
  },
  {
    rows: [54],
    takes: 'INT32[-1]',
    makes: 'INT32[-1]',
    does: 'adds a number to each',
    isReading: true,
    expressed: {
      steps: [step('more', 'arithmetic', { input: 'x' }, { op: 'add', value: 1 })],
      outputs: ['more.output'],
      draw: ({ dice }) => [dice.tensor('x', 'INT32', [dice.int(0, 9)])],
      python: 'out = (x + np.int32(1),)',
    },
  },
  {
    rows: [66],
    takes: 'FP32[-1,-1,-1]',
    makes: 'FP32[-1,-1,-1]',
    does: 'vectors of length 1',
    isReading: true,
    expressed: {
      steps: [step('unit', 'l2Normalise', { input: 'x' })],
      outputs: ['unit.output'],
      draw: ({ dice }) => [dice.tensor('x', 'FP32', dice.shape(3, 3))],
      python:
        'out = (x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12).astype(np.float32),)',
      tolerance: { absolute: 1e-6 },
    },
  },
]

function toFloats(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(Float32Array.from(bytes).buffer)
}
