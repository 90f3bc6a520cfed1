// needs: python
import { execFile } from 'node:child_process'
import { env } from 'node:process'
import { decodePicture, encodePicture, readInput, splitNamed } from '@tutti/command-line/client'
import { ServeError } from '@tutti/errors'
import { formatNpy, parseNpy } from '@tutti/formats'
import { DATATYPES, type Datatype, elementCount, fitShape } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { summarizeTensor, toJsonData } from './tensor-text.ts'
import { readOutputFiles, toFile } from './write-output.ts'

/*
 * Whatever stands in `--input` and in the files that it names is a tensor that fits the model, or an error that names the input.
 */

const NAMES = Object.keys(DATATYPES).filter((name): name is Datatype => name in DATATYPES)
const someDatatype = fc.constantFrom(...NAMES)
const someShape = fc.array(fc.constantFrom(-1, -1, 1, 2, 3), { maxLength: 4 })
const someDeclared = fc.record({
  name: fc.constantFrom('x', 'a=b', 'ü'),
  datatype: someDatatype,
  shape: someShape,
})
const someJson = fc.oneof(
  fc.json({ maxDepth: 3 }),
  fc.array(fc.integer()).map((one) => JSON.stringify(one)),
)
const someBytes = fc.oneof(
  fc.uint8Array({ maxLength: 64 }),
  fc
    .tuple(
      fc.constantFrom('\x93NUMPY\x01\x00', '\x89PNG\r\n\x1a\n'),
      fc.uint8Array({ maxLength: 64 }),
    )
    .map(([head, rest]) => Buffer.concat([Buffer.from(head, 'latin1'), rest])),
)
const someSource = fc.oneof(
  fc.oneof(fc.string(), someJson).map((text) => ({ kind: 'literal' as const, text })),
  fc
    .tuple(fc.constantFrom('x.npy', 'x.json', 'x.png', 'x.jpg', 'x.txt', 'x', '-'), someBytes)
    .map(([name, bytes]) => ({ kind: 'file' as const, name, bytes })),
)

await t.test(
  'any source is a tensor that fits, or INVALID_REQUEST and the like that name the input',
  (t) => {
    let made = 0
    fc.assert(
      fc.property(someDeclared, someSource, (declared, source) => {
        try {
          const { name, datatype, shape, data } = readInput(declared, source)
          made += 1
          const itemSize = DATATYPES[datatype].itemSize
          return (
            name === declared.name &&
            datatype === declared.datatype &&
            shape.length === declared.shape.length &&
            shape.every(
              (extent, i) => extent >= 0 && [-1, extent].includes(declared.shape[i] ?? 0),
            ) &&
            (itemSize === null || data.byteLength === elementCount(shape) * itemSize)
          )
        } catch (error) {
          if (!(error instanceof ServeError) || error.reason === 'INTERNAL') throw error
          return (
            error.message.includes(`'${declared.name}'`) && error.details.field === declared.name
          )
        }
      }),
      { numRuns: 1000 },
    )
    t.ok(made > 50, `${made} tensors`)
    t.end()
  },
)

const someTensor = fc
  .record({
    datatype: someDatatype.filter((name) => name !== 'BYTES'),
    shape: fc.array(fc.nat(3), { maxLength: 4 }),
  })
  .chain(({ datatype, shape }) => {
    const size = elementCount(shape) * (DATATYPES[datatype].itemSize ?? 0)
    const data = fc.uint8Array({ minLength: size, maxLength: size })
    return data.map((bytes) => ({ name: 'x', datatype, shape, data: bytes }))
  })

await t.test('what is written as .npy is read as it was', (t) => {
  fc.assert(
    fc.property(someTensor, (tensor) => {
      const file = formatNpy(tensor)
      if (file === undefined) return tensor.datatype === 'BF16'
      const read = parseNpy(Buffer.concat(file))
      return (
        read.datatype === tensor.datatype &&
        String(read.shape) === String(tensor.shape) &&
        Buffer.compare(read.data, tensor.data) === 0
      )
    }),
    { numRuns: 200 },
  )
  t.end()
})

await t.test('any tensor has a summary of one line, and JSON of its shape', (t) => {
  fc.assert(
    fc.property(someTensor, (tensor) => {
      const [, ...rest] = tensor.shape
      const json = toJsonData(tensor)
      const isNested =
        tensor.shape.length === 0 || (Array.isArray(json) && json.length === tensor.shape[0])
      return !summarizeTensor(tensor).includes('\n') && isNested && rest.length < 5
    }),
    { numRuns: 200 },
  )
  t.end()
})

function succeeds(make: () => unknown): boolean {
  try {
    make()
    return true
  } catch {
    return false
  }
}

await t.test(
  'no file is refused before the request that the answer could have been written to',
  (t) => {
    const someAnswer = fc.record({
      datatype: fc.constantFrom<Datatype>('UINT8', 'UINT8', 'FP32', 'BF16', 'BYTES'),
      extents: fc.array(fc.tuple(fc.constantFrom(1, 2, 3, 4, 5), fc.boolean()), { maxLength: 5 }),
      file: fc.constantFrom('x.png', 'x.npy', 'x.json', 'x.jpg', 'x'),
    })
    const written = { early: 0, late: 0 }
    fc.assert(
      fc.property(someAnswer, ({ datatype, extents, file }) => {
        const shape = extents.map(([extent]) => extent)
        const declared = extents.map(([extent, isOpen]) => (isOpen ? -1 : extent))
        const size = elementCount(shape) * (DATATYPES[datatype].itemSize ?? 4)
        const isEarly = succeeds(() =>
          readOutputFiles([`o=${file}`], [{ name: 'o', datatype, shape: declared }]),
        )
        const isLate = succeeds(() =>
          toFile({ name: 'o', datatype, shape, data: new Uint8Array(size) }, file),
        )
        written.early += Number(isEarly)
        written.late += Number(isLate)
        return (isEarly || !isLate) && (declared.includes(-1) || isEarly === isLate)
      }),
      { numRuns: 1000 },
    )
    t.ok(written.late > 100 && written.early < 1000, JSON.stringify(written))
    t.end()
  },
)

await t.test('pixels survive a PNG, in each layout', (t) => {
  const extent = fc.integer({ min: 5, max: 9 })
  const someLayout = fc.tuple(extent, extent, fc.constantFrom(1, 3, 4), fc.boolean())
  fc.assert(
    fc.property(
      someLayout,
      fc.infiniteStream(fc.nat(255)),
      ([height, width, channels, isPlanar], bytes) => {
        const shape = isPlanar ? [channels, height, width] : [height, width, channels]
        const data = Uint8Array.from({ length: height * width * channels }, () =>
          Number(bytes.next().value),
        )
        const png = encodePicture({ datatype: 'UINT8', shape, data })
        const declared = shape.map((one) => (one === channels ? one : -1))
        const read = decodePicture(png ?? new Uint8Array(), declared)
        return (
          Buffer.from(read.data).equals(Buffer.from(data)) && read.shape.join() === shape.join()
        )
      },
    ),
    { numRuns: 50 },
  )
  t.end()
})

await t.test('shapes are told where they are certain', (t) => {
  const cases: [readonly number[], number, readonly number[] | undefined, readonly number[]][] = [
    [[-1, 16], 16, undefined, [1, 16]],
    [[-1, 16], 32, undefined, [2, 16]],
    [[-1, 2, 3], 6, [2, 3], [1, 2, 3]],
    [[-1, 2, 3], 6, [6], [1, 2, 3]],
    [[-1, -1], 5, [5], [1, 5]],
    [[-1, -1, 3], 12, [2, 2, 3], [2, 2, 3]],
    [[], 1, undefined, []],
  ]
  for (const [declared, count, shape, want] of cases) {
    t.same(fitShape('x', declared, { count, ...(shape && { shape }) }), want, String(declared))
  }
  const refused: [readonly number[], number, readonly number[] | undefined][] = [
    [[-1, -1, -1], 5, undefined],
    [[2, 3], 6, [3, 2]],
    [[-1, 16], 15, undefined],
    [[-1, -1], 5, undefined],
  ]
  for (const [declared, count, shape] of refused) {
    t.throws(() => fitShape('x', declared, { count, ...(shape && { shape }) }), /input 'x': got/)
  }
  t.end()
})

await t.test('a name goes as far as the model says, whatever it has in it', (t) => {
  const names = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(names, fc.string(), (all, value) => {
      const known = all.map((name) => ({ name, datatype: 'INT8' as const, shape: [] }))
      const [name = ''] = all
      const [found, rest] = splitNamed('input', `${name}=${value}`, known)
      return `${found.name}=${rest}` === `${name}=${value}`
    }),
  )
  t.end()
})

await t.test('outputs have the form of their file', (t) => {
  const text = {
    name: 'o',
    datatype: 'BYTES' as const,
    shape: [1],
    data: Uint8Array.of(1, 0, 0, 0, 65),
  }
  t.same(
    toFile(text, 'x.jpg').map((one) => Buffer.from(one).toString()),
    ['A'],
  )
  const two = { ...text, shape: [2], data: Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0) }
  t.throws(() => toFile(two, 'x.txt'), {
    message: /'o' for x\.txt: it is BYTES\[2\], want \.json unless it has one element/,
  })
  const real = { name: 'o', datatype: 'FP32' as const, shape: [1, 2, 3], data: new Uint8Array(24) }
  t.throws(() => toFile(real, 'x.png'), { message: /FP32\[1,2,3\], want UINT8/ })
  t.throws(() => toFile(real, 'x.jpg'), { message: /want \.png/ })
  t.throws(() => toFile({ ...real, datatype: 'BF16' }, 'x.npy'), { message: /which NumPy has not/ })
  t.same(toFile(real, 'x.raw'), [real.data])
  t.same(
    toJsonData({
      ...real,
      datatype: 'FP16',
      shape: [4],
      data: Uint8Array.of(0, 0x3c, 0, 0xc0, 1, 0, 0, 0x7c),
    }),
    [1, -2, 2 ** -24, null],
  )
  t.same(
    toJsonData({ ...real, datatype: 'BF16', shape: [1], data: Uint8Array.of(0x80, 0x3f) }),
    [1],
  )
  t.end()
})

const PYTHON = env['TUTTI_TEST_PYTHON']
const skip = PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set'

await t.test('NumPy reads what is written, and writes what is read', { skip }, async (t) => {
  const data = new Uint8Array(Float32Array.of(1, 2, 3, 4, 5, 6).buffer)
  const file = Buffer.concat(formatNpy({ datatype: 'FP32', shape: [2, 3], data }) ?? [])
  const code = `import io, sys, numpy
a = numpy.load(io.BytesIO(sys.stdin.buffer.read()))
assert a.dtype == numpy.float32 and a.tolist() == [[1, 2, 3], [4, 5, 6]], a
numpy.save(sys.stdout.buffer, (a * 2).astype(numpy.int64))`
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const child = execFile(PYTHON ?? '', ['-c', code], { encoding: 'buffer' }, (error, out) =>
    error === null ? resolve(out) : reject(error),
  )
  child.stdin?.end(file)
  const read = parseNpy(await promise)
  t.match(read, { datatype: 'INT64', shape: [2, 3] })
  t.same([...new BigInt64Array(Uint8Array.from(read.data).buffer)], [2n, 4n, 6n, 8n, 10n, 12n])
})
