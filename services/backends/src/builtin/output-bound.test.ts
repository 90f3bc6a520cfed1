import { encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { openBuiltins } from '../testing/builtin-steps.ts'
import { numbersOf, numberTensor } from '../testing/random-tensors.ts'

t.setTimeout(120_000)

const bytes = (name: string, shape: readonly number[], element: Uint8Array): NamedTensor => {
  const count = shape.reduce((product, extent) => product * extent, 1)
  const data = encodeBytesTensor(Array.from({ length: count }, () => element))
  return { name, datatype: 'BYTES', shape, data }
}
const zeros = (
  name: string,
  datatype: 'INT32' | 'INT64',
  shape: readonly number[],
): NamedTensor => {
  const count = shape.reduce((product, extent) => product * extent, 1)
  return { name, datatype, shape, data: new Uint8Array(count * (datatype === 'INT32' ? 4 : 8)) }
}
const MIB = 2 ** 20
const some = Buffer.alloc(MIB, 'a')

/** The least requests whose outputs are over the bound, none of which takes more than some megabytes. */
const OVER: readonly (readonly [given: object, inputs: readonly NamedTensor[]])[] = [
  [{ name: 'take' }, [bytes('input', [1], some), zeros('indices', 'INT64', [1024])]],
  [{ name: 'take', axis: -1 }, [bytes('input', [2, 2], some), zeros('indices', 'INT32', [512])]],
  [{ name: 'concat' }, Array.from({ length: 64 }, (_, i) => bytes(`input${i}`, [16], some))],
  [{ name: 'stack' }, Array.from({ length: 64 }, (_, i) => bytes(`input${i}`, [16], some))],
  [{ name: 'labelLookup', labels: ['x'.repeat(1020)] }, [zeros('indexes', 'INT32', [MIB + 1])]],
  [
    { name: 'ctcGreedy', alphabet: ['x'.repeat(1020)], blank: 1 },
    [zeros('indexes', 'INT32', [MIB + 1, 1])],
  ],
  [{ name: 'joinTexts', separator: '-'.repeat(64) }, [bytes('texts', [MIB, 17], new Uint8Array())]],
  // A request of no bytes, whose output is nothing but the lengths of its texts.
  [{ name: 'joinTexts' }, [bytes('texts', [2 ** 28 + 1, 0], some)]],
  [{ name: 'ctcGreedy', alphabet: ['x'] }, [zeros('indexes', 'INT32', [2 ** 28 + 1, 0])]],
  [
    { name: 'cropRotated', height: 64, minWidth: 64, datatype: 'FP32' },
    [
      { name: 'image', datatype: 'UINT8', shape: [1, 1, 65_536], data: new Uint8Array(65_536) },
      {
        name: 'boxes',
        datatype: 'FP32',
        shape: [1, 4, 2],
        data: new Uint8Array(Float32Array.of(0, 0, 1, 0, 1, 1, 0, 1).buffer),
      },
    ],
  ],
]

/** No extents are known where the step is applied. */
const openDims = (inputs: readonly NamedTensor[]) =>
  Object.fromEntries(inputs.map(({ name, shape }) => [name, shape.map(() => -1)]))

await t.test('outputs over the bound are refused before they are made', async (t) => {
  const run = await openBuiltins(t)
  for (const [given, inputs] of OVER) {
    await t.rejects(
      run(t, given, inputs, openDims(inputs)),
      {
        reason: 'MESSAGE_TOO_LARGE',
        code: 'RESOURCE_EXHAUSTED',
        message:
          /^built-in \w+: its outputs would have (at least |up to )?\d+ bytes, want at most 1073741824$/,
      },
      JSON.stringify(given).slice(0, 80),
    )
  }
})

/** A tokenizer of which each letter and each word is a token. */
const TOKENIZER = {
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: [],
  normalizer: null,
  pre_tokenizer: { type: 'Whitespace' },
  post_processor: null,
  decoder: null,
  model: {
    type: 'WordLevel',
    vocab: { '[UNK]': 0, a: 1, ['long'.repeat(2 ** 18)]: 2 },
    unk_token: '[UNK]',
  },
}
const tokenize = (options: object) => ({ name: 'tokenize', ...options })
const detokenize = { name: 'detokenize' }

const short = (count: number) => Array.from({ length: count }, () => Buffer.from('a'))
const texts = (elements: readonly Uint8Array[]): NamedTensor => {
  return {
    name: 'texts',
    datatype: 'BYTES',
    shape: [elements.length],
    data: encodeBytesTensor(elements),
  }
}
const map = (shape: readonly number[], values: Float32Array): NamedTensor => {
  return { name: 'map', datatype: 'FP32', shape, data: new Uint8Array(values.buffer) }
}

const ids = (shape: readonly number[], id: number): NamedTensor => {
  const count = shape.reduce((product, extent) => product * extent, 1)
  const data = new Uint8Array(Int32Array.from({ length: count }, () => id).buffer)
  return { name: 'ids', datatype: 'INT32', shape, data }
}

await t.test('a long text among short ones is counted as many times as it pads', async (t) => {
  const run = await openBuiltins(t, t.testdir({ 'tokenizer.json': JSON.stringify(TOKENIZER) }))
  const long = Buffer.from('a '.repeat(30_000))
  for (const [options, elements] of [
    [{}, [long, ...short(4200)]],
    [{}, [...short(4200), long]],
    [{ datatype: 'INT32' }, [long, ...short(4200)]],
    [{ maxLength: 512 }, [long, ...short(100_000)]],
    [{ maxLength: 2 ** 20, padding: 'maxLength' }, short(44)],
  ] as const) {
    await t.rejects(
      run(t, tokenize(options), [texts(elements)]),
      { reason: 'MESSAGE_TOO_LARGE', message: /^built-in tokenize: its outputs would have / },
      JSON.stringify(options),
    )
  }
  const [ids] = await run(t, tokenize({}), [texts(short(150_000))])
  t.same(ids?.shape, [150_000, 1], 'many texts fit')
})

await t.test(
  'tokens that make too long a text are refused before they are put together',
  async (t) => {
    const run = await openBuiltins(t, t.testdir({ 'tokenizer.json': JSON.stringify(TOKENIZER) }))
    await t.rejects(run(t, detokenize, [ids([2, 17], 2)]), {
      reason: 'INVALID_REQUEST',
      message: 'input "ids": tokens of 17825792 characters in text 0, want at most 16777216',
    })
    await t.rejects(run(t, detokenize, [ids([MIB + 1], 1)]), {
      message: /"inputs.ids","got":"dims \[1048577\]","want":"at most 1048576 tokens each"/,
    })
  },
)

await t.test('a map of noise is refused, and one without pixels has no boxes', async (t) => {
  const run = await openBuiltins(t)
  const size = {
    name: 'size',
    datatype: 'INT64',
    shape: [2],
    data: new Uint8Array(BigInt64Array.of(9n, 9n).buffer),
  } as const
  const dots = Float32Array.from({ length: 2100 * 1000 }, (_, i) => i % 2)
  await t.rejects(run(t, { name: 'probabilityBoxes' }, [map([2100, 1000], dots), size]), {
    reason: 'INVALID_REQUEST',
    message:
      'input "map": more than 1048576 runs of pixels on one side of the threshold, want regions, such as of texts',
  })
  const nothing = map([2 ** 31, 0], new Float32Array())
  const [boxes] = await run(t, { name: 'probabilityBoxes' }, [nothing, size])
  t.same(boxes?.shape, [0, 4, 2])
})

await t.test('what no request can have is refused where the step is applied', async (t) => {
  const run = await openBuiltins(t)
  const input = numberTensor('input', 'FP32', [1, 1], [1])
  const side = 2 ** 31 - 1
  for (const [given, shape] of [
    [{ name: 'reshape', shape: [side, side, side] }, [-1, -1]],
    [
      {
        name: 'pad',
        widths: [
          [2 ** 20, 2 ** 20],
          [2 ** 20, 2 ** 20],
        ],
      },
      [1, 1],
    ],
  ] as const) {
    await t.rejects(
      run(t, given, [input], { input: shape }),
      /outputs\.output.*bytes of FP32.*at most 1073741824 bytes/,
      given.name,
    )
  }
})

/** The same tensor, whose data begin at no multiple of anything. */
function moved(tensor: NamedTensor): NamedTensor {
  const memory = Buffer.alloc(tensor.data.byteLength + 1)
  memory.set(tensor.data, 1)
  return { ...tensor, data: memory.subarray(1) }
}

await t.test('numbers may lie anywhere in the memory of a message', async (t) => {
  const run = await openBuiltins(t)
  const input = numberTensor('input', 'FP32', [3], [1, 2, 3])
  const indices = moved(numberTensor('indices', 'INT64', [2], [-1, 0]))
  const [taken] = await run(t, { name: 'take' }, [input, indices])
  t.same(taken && numbersOf(taken), [3, 1])
  const boxes = numberTensor('boxes', 'FP32', [2, 4], [0, 0, 1, 1, 0, 0, 1, 1])
  const scores = numberTensor('scores', 'FP32', [2], [0.5, 0.6])
  const classes = moved(numberTensor('classes', 'INT32', [2], [7, 7]))
  const [best] = await run(t, { name: 'nms' }, [boxes, scores, classes])
  t.same(best?.shape, [1, 4])
})

await t.test('a place that the input does not have is an error that names it', async (t) => {
  const run = await openBuiltins(t)
  const input = numberTensor('input', 'FP32', [3], [1, 2, 3])
  for (const [place, text] of [
    [3n, '3'],
    [-4n, '-4'],
    [2n ** 62n, '4611686018427387904'],
  ] as const) {
    const data = new Uint8Array(BigInt64Array.of(0n, place).buffer)
    const indices = { name: 'indices', datatype: 'INT64', shape: [2], data } as const
    await t.rejects(run(t, { name: 'take' }, [input, indices]), {
      code: 'INVALID_ARGUMENT',
      message: `input "indices": place ${text}, want -3 to 2`,
    })
  }
  const [taken] = await run(t, { name: 'take' }, [
    input,
    numberTensor('indices', 'INT32', [2], [-3, 2]),
  ])
  t.same(taken && numbersOf(taken), [1, 3])
})
