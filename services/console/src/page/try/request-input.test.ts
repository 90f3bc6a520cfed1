import { ServeError } from '@tutti/errors'
import { formatNpy } from '@tutti/formats'
import { DATATYPES, elementCount, isDatatype, shapeMatches } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import type { Tensor } from '../../api/model-detail.ts'
import { type Draft, firstDraft, toRequestInput } from './request-input.ts'

const NAMES = Object.keys(DATATYPES).filter(isDatatype)

function tensorOf(datatype: string, shape: readonly number[], isOptional = false): Tensor {
  return { name: 'x', datatype, shape, isOptional }
}

function draftOf(draft: Partial<Draft>): Draft {
  return { text: '', scale: '0 to 255', isTouched: true, ...draft }
}

/** A picture of one colour in any size. */
function flat(width: number, height: number, colour: readonly [number, number, number]) {
  const draw = (w: number, h: number) =>
    Uint8ClampedArray.from({ length: w * h * 4 }, (_, i) => [...colour, 255][i % 4] ?? 0)
  return { name: 'a.png', bytes: new Uint8Array(5), picture: { width, height, draw } }
}

await t.test('text is JSON with the shape that it is written in, or fits', async (t) => {
  const cases = [
    ['FP32', [-1, 4], '[1, 2, 3, 4]', [1, 4], '[1, 2, 3, 4]'],
    ['FP32', [-1, 2], '[[1, 2], [3, 4]]', [2, 2], '[[1, 2], [3, 4]]'],
    ['INT64', [1], '9007199254740993', [1], '[9007199254740993]'],
    ['BOOL', [-1, -1], '[true]', [1, 1], '[true]'],
    ['BYTES', [-1, 1], 'say "hi"', [1, 1], '["say \\"hi\\""]'],
    ['BYTES', [-1], '["a", "b"]', [2], '["a", "b"]'],
    ['BYTES', [-1], '[1]', [1], '["[1]"]'],
    ['BYTES', [1], '', [1], '[""]'],
  ] as const
  for (const [datatype, shape, text, want, json] of cases) {
    const input = toRequestInput(tensorOf(datatype, shape), draftOf({ text }))
    t.match(input, { name: 'x', datatype, shape: want, content: { kind: 'json', text: json } })
  }
})

await t.test('halves go as bytes, which JSON has none of', async (t) => {
  const input = toRequestInput(
    tensorOf('FP16', [-1]),
    draftOf({ text: '[1, [-2]]'.replace('[-2]', '-2') }),
  )
  t.match(input, { shape: [2], content: { kind: 'bytes', source: { isMade: true } } })
  t.same(input?.content.kind === 'bytes' && [...input.content.data], [0, 0x3c, 0, 0xc0])
})

await t.test('files that the page makes have different names', async (t) => {
  const names = ['x_1', 'a b', 'a_b', 'a=20b', 'a/b', 'ü', '😀', '\x010', '\x10']
  const files = names.map((name) => {
    const tensor = { ...tensorOf('FP16', [-1]), name }
    const content = toRequestInput(tensor, draftOf({ text: '[1]' }))?.content
    return content?.kind === 'bytes' && content.source.file
  })
  t.equal(new Set(files).size, names.length)
  t.same(files.slice(0, 2), ['x_1.raw', 'a=20b.raw'])
  t.notOk(files.some((file) => !/^[\w.=-]+$/.test(String(file))))
})

await t.test('an optional input without a value is left out', async (t) => {
  t.equal(toRequestInput(tensorOf('FP32', [1], true), draftOf({ text: ' ' })), undefined)
  t.equal(firstDraft(tensorOf('FP32', [1], true)).text, '')
})

await t.test('files are elements, arrays of NumPy, pictures or bytes', async (t) => {
  const bytes = Uint8Array.of(1, 2, 3, 4)
  const raw = toRequestInput(tensorOf('UINT8', [-1, -1]), draftOf({ file: { name: 'a', bytes } }))
  t.match(raw, { shape: [1, 4], content: { data: bytes, source: { file: 'a', skip: 0 } } })
  const element = toRequestInput(tensorOf('BYTES', [-1]), draftOf({ file: { name: 'a', bytes } }))
  t.match(element, { shape: [1], content: { source: { isElement: true } } })
  t.same(element?.content.kind === 'bytes' && [...element.content.data], [4, 0, 0, 0, 1, 2, 3, 4])

  const npy = Buffer.concat(formatNpy({ datatype: 'UINT8', shape: [2, 2], data: bytes }) ?? [])
  const array = toRequestInput(
    tensorOf('UINT8', [-1, 2]),
    draftOf({ file: { name: 'a', bytes: npy } }),
  )
  t.match(array, { shape: [2, 2], content: { source: { skip: npy.byteLength - 4 } } })
  t.same(array?.content.kind === 'bytes' && [...array.content.data], [1, 2, 3, 4])

  // An encoded picture is what some models want.
  const encoded = toRequestInput(
    tensorOf('UINT8', [-1, -1]),
    draftOf({ file: flat(2, 3, [0, 0, 0]) }),
  )
  t.match(encoded, { shape: [1, 5] })
})

await t.test('a picture has the size that is wanted, or its own', async (t) => {
  const file = flat(2, 3, [255, 0, 51])
  const cases = [
    ['UINT8', [-1, -1, 3], [3, 2, 3], [255, 0, 51]],
    ['UINT8', [-1, 6, 5, 3], [1, 6, 5, 3], [255, 0, 51]],
    ['UINT8', [1, 3, 4, 5], [1, 3, 4, 5], [255, 255, 255]],
    ['UINT8', [-1, -1, 1], [3, 2, 1], [82, 82, 82]],
  ] as const
  for (const [datatype, shape, want, first] of cases) {
    const input = toRequestInput(tensorOf(datatype, shape), draftOf({ file }))
    t.same(input?.shape, want)
    t.same(input?.content.kind === 'bytes' && [...input.content.data.subarray(0, 3)], first)
  }
  const input = toRequestInput(tensorOf('FP32', [3, -1, -1]), draftOf({ file, scale: '-1 to 1' }))
  const { content } = input ?? {}
  if (content?.kind !== 'bytes') throw new Error('no bytes')
  const values = new Float32Array(content.data.buffer)
  t.same([values[0], values[6], values[12]], [1, -1, Math.fround(51 * (2 / 255) - 1)])
})

await t.test('what does not fit is refused in words', async (t) => {
  const picture = flat(2, 3, [0, 0, 0])
  const cases = [
    [tensorOf('FP32', [4]), { text: '[1, 2]' }, /'x': got shape \[2\], want \[4\]/],
    [tensorOf('FP32', [4]), { text: 'abc' }, /got "abc", want JSON/],
    [tensorOf('FP32', [-1, 2]), { text: '[[1, 2], [3]]' }, /not of one length/],
    [tensorOf('FP16', [-1]), { text: '["a"]' }, /want numbers only/],
    [tensorOf('FP32', [-1, 16]), { file: picture }, /want a shape with 1, 3 or 4 channels/],
    [tensorOf('INT64', [-1, -1, 3]), { file: picture }, /INT64 is not made of pictures/],
    [tensorOf('FP32', [-1]), { file: { name: 'a', bytes: new Uint8Array(5) } }, /got 5 bytes/],
    [
      tensorOf('FP32', [-1, -1, 3]),
      { file: { name: 'a', bytes: new Uint8Array(12) } },
      /or a .npy/,
    ],
    [tensorOf('', []), { text: '1' }, /datatype '' is not known/],
  ] as const
  for (const [tensor, draft, message] of cases) {
    t.throws(() => toRequestInput(tensor, draftOf(draft)), { reason: 'INVALID_REQUEST', message })
  }
})

await t.test('any text and any file is an input that fits, or is refused', async (t) => {
  const someShape = fc.array(fc.constantFrom(-1, 1, 2, 3), { maxLength: 4 })
  const someText = fc.oneof(
    fc.string(),
    fc.json({ maxDepth: 3 }),
    fc.constantFrom('[]', '[[1],[2]]'),
  )
  const someFile = fc.record({
    name: fc.constantFrom('a.npy', 'a.json', 'a.png', 'a'),
    bytes: fc.uint8Array({ maxLength: 40 }),
  })
  let made = 0
  fc.assert(
    fc.property(fc.constantFrom(...NAMES), someShape, someText, fc.option(someFile), (...some) => {
      const [datatype, shape, text, file] = some
      try {
        const input = toRequestInput(
          tensorOf(datatype, shape),
          draftOf({ text, file: file ?? undefined }),
        )
        if (input === undefined || !shapeMatches(shape, input.shape)) return false
        made += 1
        const { content } = input
        if (content.kind === 'json') return Array.isArray(JSON.parse(content.text))
        const { itemSize } = DATATYPES[datatype]
        return itemSize === null || content.data.byteLength === elementCount(input.shape) * itemSize
      } catch (error) {
        return error instanceof ServeError && error.reason === 'INVALID_REQUEST'
      }
    }),
    { numRuns: 400 },
  )
  t.ok(made > 10)
})

await t.test('the form begins with a request that can be sent', async (t) => {
  for (const datatype of NAMES) {
    for (const shape of [datatype === 'BYTES' ? [-1, 1] : [-1, 16], [], [1]]) {
      const tensor = tensorOf(datatype, shape)
      t.ok(toRequestInput(tensor, firstDraft(tensor)), `${datatype} ${String(shape)}`)
    }
  }
  t.equal(firstDraft(tensorOf('FP32', [224, 224, 3])).text, '')
})
