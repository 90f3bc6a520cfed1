import t from 'tap'
import { mapBounded } from './bounded.ts'

await t.test('keeps the order of the items and never runs more than the limit', async (t) => {
  for (const limit of [1, 3, 9]) {
    let running = 0
    let most = 0
    const results = await mapBounded([5, 1, 4, 2, 3], limit, async (item) => {
      running += 1
      most = Math.max(most, running)
      for (let i = 0; i < item; i += 1) await new Promise(setImmediate)
      running -= 1
      return item * 2
    })
    t.same(results, [10, 2, 8, 4, 6])
    t.equal(most, Math.min(limit, 5))
  }
  t.same(await mapBounded([], 3, () => Promise.resolve(1)), [])
})

await t.test('a rejection is passed on', async (t) => {
  const failing = mapBounded([1, 2], 2, (item) =>
    item === 2 ? Promise.reject(new Error('two')) : Promise.resolve(item),
  )
  await t.rejects(failing, { message: 'two' })
})
