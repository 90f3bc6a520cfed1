import t from 'tap'
import { BufferPool } from './buffer-pool.ts'

await t.test('a pool reuses buffers and keeps no more than its bound', async (t) => {
  const pool = new BufferPool(20_000)
  const buffer = pool.take(100)
  t.equal(buffer.byteLength, 4096)
  pool.give(buffer)
  t.equal(pool.take(4000), buffer)
  t.equal(pool.take(5000).byteLength, 8192)
  t.equal(pool.take(2 ** 20 + 1).byteLength, 2 * 2 ** 20)
  const larger = [new ArrayBuffer(8192), new ArrayBuffer(8192)]
  pool.give(buffer)
  for (const one of larger) pool.give(one)
  t.not(pool.take(4096), buffer, 'the size that came last the longest ago made place')
  t.equal(pool.take(8192), larger[1])
  t.equal(pool.take(8192), larger[0])
  pool.give(buffer)
  t.equal(pool.take(4096), buffer, 'what was taken counts no more')
  for (const [size, what] of [
    [5000, 'a buffer of another size'],
    [32_768, 'a buffer above the bound'],
  ] as const) {
    pool.give(buffer)
    const odd = new ArrayBuffer(size)
    pool.give(odd)
    t.not(pool.take(size), odd, `${what} is dropped`)
    t.equal(pool.take(4096), buffer, `${what} takes no place`)
  }
})

await t.test('sizes that are not used any more make place for those that are', async (t) => {
  const pool = new BufferPool(1024 * 1024)
  for (let size = 4096; size <= 1024 * 1024; size *= 2) pool.give(new ArrayBuffer(size))
  const buffers = [1, 2].map(() => pool.take(512 * 1024))
  for (const buffer of buffers) pool.give(buffer)
  t.same(new Set([1, 2].map(() => pool.take(512 * 1024))), new Set(buffers))
})
