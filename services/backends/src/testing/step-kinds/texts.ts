import { bytesTensor, type Draw, type StepChain, type StepKind, step } from './step-kind.ts'

const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make)
const drawTexts =
  (name: string, least: number, most: number) =>
  ({ dice, text }: Draw) => {
    const count = dice.int(least, most)
    return bytesTensor(name, [count], times(count, text))
  }

/** Python that has the tokens of `texts`, a list, as `rows`. */
const ENCODE = 'rows = tokenizer.encode_batch([t.decode() for t in texts])'
const fields = (names: readonly string[], datatype = 'int64'): string =>
  `out = tuple(np.array([getattr(row, f) for row in rows], '${datatype}') for f in ${JSON.stringify(names)})`
const PYTHON_NAMES = ['ids', 'attention_mask', 'type_ids']
const OUTPUTS = ['input_ids', 'attention_mask', 'token_type_ids']

/** Tokens of texts, padded together. */
function tokens(count: number, datatype: 'INT64' | 'INT32' = 'INT64'): StepChain {
  return {
    steps: [step('tokens', 'tokenize', { texts: 'texts' }, { datatype })],
    outputs: OUTPUTS.slice(0, count).map((name) => `tokens.${name}`),
    draw: (draw) => [drawTexts('texts', 1, 5)(draw)],
    python: `${ENCODE}\n${fields(PYTHON_NAMES.slice(0, count), datatype.toLowerCase())}`,
  }
}

/** Tokens of one text, without a dimension of texts. */
function oneText(count: number, datatype: 'INT64' | 'INT32' = 'INT64'): StepChain {
  const names = OUTPUTS.slice(0, count)
  return {
    steps: [
      step('tokens', 'tokenize', { texts: 'texts' }, { datatype }),
      ...names.map((name, i) => step(`row${i}`, 'squeeze', { input: `tokens.${name}` })),
    ],
    outputs: names.map((_, i) => `row${i}.output`),
    draw: (draw) => [drawTexts('texts', 1, 1)(draw)],
    python: `${ENCODE}\n${fields(PYTHON_NAMES.slice(0, count), datatype.toLowerCase())}\nout = tuple(one[0] for one in out)`,
  }
}

const PAIRS: StepChain = {
  steps: [step('tokens', 'tokenize', { texts: 'queries', pairs: 'documents' })],
  outputs: OUTPUTS.map((name) => `tokens.${name}`),
  draw: ({ dice, text }) => {
    const count = dice.int(1, 5)
    return ['queries', 'documents'].map((name) => bytesTensor(name, [count], times(count, text)))
  },
  python: `rows = tokenizer.encode_batch([(q.decode(), d.decode()) for q, d in zip(queries, documents)])
${fields(PYTHON_NAMES)}`,
}

const EACH_OF_MANY: StepChain = {
  steps: [
    step('numbers', 'positions', { input: 'documents' }, { axis: 0 }),
    step('asked', 'take', { input: 'queries', indices: 'numbers.output' }),
    step('texts', 'reshape', { input: 'asked.output' }, { shape: [-1] }),
    step('pairs', 'reshape', { input: 'documents' }, { shape: [-1] }),
    step('tokens', 'tokenize', { texts: 'texts.output', pairs: 'pairs.output' }),
  ],
  outputs: OUTPUTS.map((name) => `tokens.${name}`),
  draw: ({ dice, text }) => {
    const [count, each] = [dice.int(1, 3), dice.int(1, 4)]
    return [
      bytesTensor('documents', [count, each], times(count * each, text)),
      bytesTensor('queries', [count], times(count, text)),
    ]
  },
  python: `rows = tokenizer.encode_batch([(q.decode(), d.decode()) for q, row in zip(queries, documents) for d in row])
${fields(PYTHON_NAMES)}`,
}

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz'.split('')
const CTC = `def read(scores):
    best = scores.argmax(-1)
    kept = [k for i, k in enumerate(best) if k != 0 and (i == 0 or k != best[i - 1])]
    return ''.join('0123456789abcdefghijklmnopqrstuvwxyz'[k - 1] for k in kept).encode()
`
const LABELS = ['cat', 'dog', 'fish', 'none of these']
/** Scores of some classes, and the label of the best. */
const NAMED = [
  step('best', 'argmax', { input: 'scores' }),
  step('names', 'labelLookup', { indexes: 'best.output' }, { labels: LABELS }),
]
const drawScores = ({ dice }: Draw) => [
  dice.tensor('scores', 'FP32', [dice.int(1, 6), LABELS.length]),
]
const NAME_PYTHON = `labels = [b'cat', b'dog', b'fish', b'none of these']
names = np.array([labels[k] for k in scores.argmax(1)], object)
`

export const TEXT_KINDS: readonly StepKind[] = [
  {
    rows: [2],
    takes: 'STRING[-1]',
    makes: 'INT64[-1,-1], INT64[-1,-1], INT64[-1,-1]',
    does: 'tokens, mask and types of texts',
    expressed: tokens(3),
  },
  {
    rows: [8, 68],
    takes: 'STRING[-1]',
    makes: 'INT64[-1,-1], INT64[-1,-1]',
    does: 'tokens and mask of texts',
    expressed: tokens(2),
  },
  {
    rows: [48],
    takes: 'STRING[-1]',
    makes: 'INT32[-1,-1], INT32[-1,-1]',
    does: 'tokens and mask of texts as INT32',
    expressed: tokens(2, 'INT32'),
  },
  {
    rows: [23],
    takes: 'STRING[1]',
    makes: 'INT64[-1], INT64[-1], INT64[-1]',
    does: 'tokens, mask and types of one text',
    expressed: oneText(3),
  },
  {
    rows: [32, 33, 34],
    takes: 'STRING[-1]',
    makes: 'INT64[-1], INT64[-1]',
    does: 'tokens and mask of one text',
    expressed: oneText(2),
  },
  {
    rows: [67],
    takes: 'STRING[-1]',
    makes: 'INT32[-1], INT32[-1]',
    does: 'tokens and mask of one text as INT32',
    expressed: oneText(2, 'INT32'),
  },
  {
    rows: [60, 63],
    takes: 'STRING[-1], STRING[-1]',
    makes: 'INT64[-1,-1], INT64[-1,-1], INT64[-1,-1]',
    does: 'tokens of pairs of texts',
    expressed: PAIRS,
  },
  {
    rows: [61, 62],
    takes: 'STRING[-1,-1], STRING[-1]',
    makes: 'INT64[-1,-1], INT64[-1,-1], INT64[-1,-1]',
    does: 'tokens of each query with each of its documents',
    expressed: EACH_OF_MANY,
  },
  {
    rows: [47],
    takes: '(auto)',
    makes: 'INT32[-1,-1], STRING[-1]',
    does: 'tokens of texts, and texts of tokens',
    isReading: true,
    expressed: {
      steps: [
        step('tokens', 'tokenize', { texts: 'texts' }, { datatype: 'INT32' }),
        step('back', 'detokenize', { ids: 'ids' }),
      ],
      outputs: ['tokens.input_ids', 'back.texts'],
      draw: (draw) => {
        const shape = [draw.dice.int(1, 4), draw.dice.int(1, 9)]
        const ids = draw.dice.tensor('ids', 'INT32', shape, { least: 0, most: 300 })
        return [drawTexts('texts', 1, 4)(draw), ids]
      },
      python: `${ENCODE}
out = (np.array([row.ids for row in rows], 'int32'), np.array([tokenizer.decode(row).encode() for row in ids], object))`,
    },
  },
  {
    rows: [18],
    takes: 'FP32[-1,-1]',
    makes: 'STRING[-1]',
    does: 'label of the best class',
    expressed: {
      steps: NAMED,
      outputs: ['names.labels'],
      draw: drawScores,
      python: `${NAME_PYTHON}out = (names,)`,
    },
  },
  {
    rows: [28],
    takes: 'FP32[-1,-1]',
    makes: 'STRING[-1], FP32[-1]',
    does: 'label of the best class, and its score',
    isReading: true,
    expressed: {
      steps: [...NAMED, step('top', 'reduce', { input: 'scores' }, { op: 'max', axes: [1] })],
      outputs: ['names.labels', 'top.output'],
      draw: drawScores,
      python: `${NAME_PYTHON}out = (names, scores.max(1))`,
    },
  },
  {
    rows: [46],
    takes: 'FP32[26,37]',
    makes: 'STRING[-1]',
    does: 'text of the steps of a CTC network',
    expressed: {
      steps: [
        step('best', 'argmax', { input: 'scores' }),
        step('line', 'expandDims', { input: 'best.output' }),
        step('read', 'ctcGreedy', { indexes: 'line.output' }, { alphabet: ALPHABET }),
      ],
      outputs: ['read.text'],
      draw: ({ dice }) => [dice.tensor('scores', 'FP32', [26, 37])],
      python: `${CTC}out = (np.array([read(scores)], object),)`,
    },
  },
  {
    rows: [59],
    takes: 'FP32[-1,26,37]',
    makes: 'STRING[-1,-1]',
    does: 'texts of the steps of a CTC network, one for each picture',
    expressed: {
      steps: [
        step('best', 'argmax', { input: 'scores' }),
        step('read', 'ctcGreedy', { indexes: 'best.output' }, { alphabet: ALPHABET }),
        step('column', 'expandDims', { input: 'read.text' }, { axis: 1 }),
      ],
      outputs: ['column.output'],
      draw: ({ dice }) => [dice.tensor('scores', 'FP32', [dice.int(1, 5), 26, 37])],
      python: `${CTC}out = (np.array([[read(one)] for one in scores], object),)`,
    },
  },
]
