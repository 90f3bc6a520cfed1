import t from 'tap'
import { ask, describe, openClient } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { slowQuestion } from './questions.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

await t.test('more requests than a step has slots for', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [router, step] = await Promise.all([harness.router(), harness.step({ models: ['slow'] })])
  await untilReady([router], ['slow'])
  const { freeSlots } = await harness.watch.next(step.id, 'is there', () => true)
  t.ok(freeSlots > 0 && freeSlots < 100_000, `${freeSlots} slots`)
  const client = openClient(t, router)
  const cancel = new AbortController()
  const isFull = harness.watch.next(step.id, 'is full', (h) => h.freeSlots === 0)
  const asked = Array.from({ length: freeSlots + 50 }, () =>
    ask(client, slowQuestion(4000), { signal: cancel.signal }),
  )
  await isFull
  const refused = await Promise.race([ask(client, slowQuestion(1)), ...asked])
  t.match(refused, { kind: 'error' }, describe(refused))
  t.ok(
    refused.kind === 'error' && ['RESOURCE_EXHAUSTED', 'UNAVAILABLE'].includes(refused.code),
    describe(refused),
  )
  cancel.abort()
  await Promise.all(asked)
  await harness.watch.idle(step.id)
  t.same(await ask(client, slowQuestion(1)), { kind: 'right' })
})
