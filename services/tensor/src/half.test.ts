import * as fc from 'fast-check'
import t from 'tap'
import { fromBrain, fromHalf, toBrain, toHalf } from './half.ts'

const ALL_BITS = Array.from({ length: 65_536 }, (_, bits) => bits)

await t.test('all values of both datatypes come back as they were', async (t) => {
  for (const [read, write] of [
    [fromHalf, toHalf],
    [fromBrain, toBrain],
  ] as const) {
    const numbers = ALL_BITS.filter((bits) => !Number.isNaN(read(bits)))
    t.same(
      numbers.filter((bits) => write(read(bits)) !== bits),
      [],
    )
    t.ok(Number.isNaN(read(write(NaN))))
  }
})

await t.test('FP16 is rounded as JavaScript rounds it', async () => {
  const round: unknown = Reflect.get(Math, 'f16round')
  if (typeof round !== 'function') throw new Error('this Node has no Math.f16round')
  fc.assert(
    fc.property(
      fc.oneof(fc.double(), fc.float(), fc.double({ min: -70_000, max: 70_000 })),
      (value) => Object.is(fromHalf(toHalf(value)), round(value)),
    ),
    { numRuns: 2000 },
  )
})

await t.test('BF16 is the nearest of the values around, ties to even', async () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, min: -(2 ** 126), max: 2 ** 126 }), (value) => {
      const bits = toBrain(value)
      const off = Math.abs(fromBrain(bits) - value)
      const others = [bits - 1, bits + 1].map((other) => Math.abs(fromBrain(other) - value))
      return others.every(
        (other) => Number.isNaN(other) || off < other || (off === other && bits % 2 === 0),
      )
    }),
  )
})
