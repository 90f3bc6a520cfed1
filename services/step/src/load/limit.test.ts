import t from 'tap'
import { Limit } from './limit.ts'

await t.test('at most so many calls run at a time, in the order in which they came', async (t) => {
  const limit = new Limit(2)
  const begun: number[] = []
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const calls = gates.map((gate, i) =>
    limit.run(async () => {
      begun.push(i)
      await gate.promise
      return i
    }),
  )
  t.same(begun, [0, 1])
  gates[1]?.resolve()
  t.equal(await calls[1], 1)
  t.same(begun, [0, 1, 2])
  for (const gate of gates) gate.resolve()
  t.same(await Promise.all(calls), [0, 1, 2, 3])
})

await t.test('a call that fails gives up its place', async (t) => {
  const limit = new Limit(1)
  await t.rejects(
    limit.run(() => Promise.reject(new Error('no'))),
    { message: 'no' },
  )
  t.equal(await limit.run(async () => 'yes'), 'yes')
})
