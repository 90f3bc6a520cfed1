import type { NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { EngineMemory, spareBytes } from './engine-memory.ts'

const MEBIBYTE = 2 ** 20

function inputs(...sizes: readonly number[]): readonly NamedTensor[] {
  return sizes.map((size, i) => {
    return { name: `x${i}`, datatype: 'FP32', shape: [size / 4], data: new Uint8Array(size) }
  })
}

await t.test('a large execution begins only with three times its inputs free', (t) => {
  const memory = new EngineMemory(() => 75 * MEBIBYTE)
  memory.reserve(inputs(25 * MEBIBYTE))?.()
  memory.reserve(inputs(13 * MEBIBYTE, 12 * MEBIBYTE))?.()
  t.throws(() => memory.reserve(inputs(13 * MEBIBYTE, 13 * MEBIBYTE)), {
    reason: 'OVERLOADED',
    code: 'RESOURCE_EXHAUSTED',
    message:
      /inputs of 27262976 bytes, as floats, may take 81788928 more, and the process may take 78643200 more/,
  })
  t.end()
})

await t.test('what goes on counts until it has ended', (t) => {
  const memory = new EngineMemory(() => 96 * MEBIBYTE)
  const ends = [memory.reserve(inputs(16 * MEBIBYTE)), memory.reserve(inputs(16 * MEBIBYTE))]
  t.throws(() => memory.reserve(inputs(16 * MEBIBYTE)), {
    reason: 'OVERLOADED',
    message: /overloaded/,
  })
  ends[0]?.()
  ends.push(memory.reserve(inputs(16 * MEBIBYTE)))
  t.equal(ends.length, 3)
  t.end()
})

await t.test('an element of a byte counts as the float that it becomes', (t) => {
  const data = new Uint8Array(8 * MEBIBYTE)
  const picture: NamedTensor = { name: 'x', datatype: 'UINT8', shape: [data.byteLength], data }
  const memory = new EngineMemory(() => 95 * MEBIBYTE)
  t.throws(() => memory.reserve([picture]), { reason: 'OVERLOADED', message: /overloaded/ })
  t.ok(new EngineMemory(() => 96 * MEBIBYTE).reserve([picture]))
  t.end()
})

await t.test('short texts count as the objects that engines make of them', (t) => {
  const count = MEBIBYTE
  const data = new Uint8Array(4 * count)
  const texts: NamedTensor = { name: 'x', datatype: 'BYTES', shape: [count], data }
  t.throws(() => new EngineMemory(() => 75 * MEBIBYTE).reserve([texts]), {
    reason: 'OVERLOADED',
    message: /overloaded/,
  })
  t.ok(new EngineMemory(() => 96 * MEBIBYTE).reserve([texts]))
  t.end()
})

await t.test('small ones are not looked at, and this process has memory for a large one', (t) => {
  const memory = new EngineMemory(() => t.fail('it looks') as never)
  t.equal(memory.reserve(inputs(15 * MEBIBYTE)), undefined)
  t.ok(new EngineMemory().reserve(inputs(16 * MEBIBYTE)))
  t.end()
})

await t.test('models that take most of the memory leave some for large executions', (t) => {
  const most = 2048 * MEBIBYTE
  t.equal(spareBytes(most, 512 * MEBIBYTE), 1024 * MEBIBYTE, 'up to three quarters of all')
  t.equal(spareBytes(most, 1648 * MEBIBYTE), 100 * MEBIBYTE, 'a quarter of what is left')
  t.ok(new EngineMemory(() => spareBytes(most, 1648 * MEBIBYTE)).reserve(inputs(32 * MEBIBYTE)))
  t.equal(spareBytes(most, most), 0)
  t.equal(spareBytes(most, most + 1), 0)
  t.end()
})
