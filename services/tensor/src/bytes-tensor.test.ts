import * as fc from 'fast-check'
import t from 'tap'
import {
  bytesElements,
  decodeBytesTensor,
  encodeBytesTensor,
  walkBytesTensor,
} from './bytes-tensor.ts'

const bytes = (...values: number[]) => Uint8Array.from(values)

await t.test('each element is a little-endian length and its bytes', async (t) => {
  const encoded = encodeBytesTensor([bytes(0x61, 0x62), bytes(), bytes(0)])
  t.same([...encoded], [2, 0, 0, 0, 0x61, 0x62, 0, 0, 0, 0, 1, 0, 0, 0, 0])
  t.equal(encodeBytesTensor([]).byteLength, 0)
})

await t.test('what was encoded is decoded', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 20 }), (elements) => {
      const decoded = decodeBytesTensor(encodeBytesTensor(elements))
      return (
        decoded.length === elements.length &&
        decoded.every((element, i) => Buffer.from(element).equals(elements[i] ?? bytes()))
      )
    }),
  )
  t.pass('held for every list tried')
})

await t.test('elements are views, also of data that starts inside its buffer', async (t) => {
  const buffer = bytes(9, 9, 9, 1, 0, 0, 0, 7)
  const [element] = decodeBytesTensor(buffer.subarray(3))
  t.same([...(element ?? [])], [7])
  buffer[7] = 8
  t.same([...(element ?? [])], [8])
})

await t.test('what is cut short is INVALID_TENSOR_DATA', async (t) => {
  const cases = [
    { data: bytes(1), message: 'incomplete string length indicator: want 4 bytes, got 1' },
    { data: bytes(1, 0, 0), message: 'incomplete string length indicator: want 4 bytes, got 3' },
    { data: bytes(2, 0, 0, 0, 1), message: 'incomplete string data: want 2 bytes, got 1' },
    {
      data: bytes(0xff, 0xff, 0xff, 0xff),
      message: 'incomplete string data: want 4294967295 bytes, got 0',
    },
    {
      data: bytes(0, 0, 0, 0, 5),
      message: 'incomplete string length indicator: want 4 bytes, got 1',
    },
  ]
  for (const { data, message } of cases) {
    t.throws(() => decodeBytesTensor(data), { reason: 'INVALID_TENSOR_DATA', message }, message)
  }
})

await t.test('arbitrary bytes are decoded completely or refused', async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (data) => {
      try {
        return Buffer.from(encodeBytesTensor(decodeBytesTensor(data))).equals(data)
      } catch (error) {
        return Object(error).reason === 'INVALID_TENSOR_DATA'
      }
    }),
    { numRuns: 500 },
  )
  t.pass('held for every input tried')
})

function outcome(read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    return String(error)
  }
}

await t.test('a walk sees what the elements are, and takes no object for each', async (t) => {
  const small = fc.array(fc.constantFrom(0, 0, 0, 1, 2, 255), { maxLength: 24 })
  fc.assert(
    fc.property(small, (given) => {
      const data = Uint8Array.from(given)
      const walked = outcome(() => {
        const parts: number[][] = []
        const count = walkBytesTensor(data, (begin, end) =>
          parts.push([...data.subarray(begin, end)]),
        )
        return JSON.stringify([count, parts])
      })
      const parts = outcome(() => {
        const all = [...bytesElements(data)].map((one) => [...one])
        return JSON.stringify([all.length, all])
      })
      return walked === parts
    }),
    { numRuns: 1000 },
  )
  const count = 4 * 2 ** 20
  const data = new Uint8Array(4 * count)
  const walkMs = cpuMs(() => t.equal(walkBytesTensor(data), count))
  const viewsMs = cpuMs(() => Array.from(bytesElements(data)))
  // It takes a tenth.
  t.ok(walkMs < viewsMs / 2, `${walkMs} ms, with a view for each ${viewsMs} ms`)
})

/** Milliseconds of the processor that this thread takes. */
function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}
