import { testFactor, until } from '@tutti/chassis/testing'
import t from 'tap'
import { churn, churnRepository, heldBy } from './control-churn.ts'
import { serve } from './serving.ts'

t.setTimeout(900_000)

const WARM_UP = 40
const TIMES = testFactor() > 1 ? 200 : 60
/** Limit of the growth of one round over the one before. */
const GROWTH_BYTES = 24 * 1024 * 1024
/** A heap that has not found its size yet grows by more for a while; what leaks grows in every round. */
const ROUNDS = 4

await t.test(`${TIMES} loads and unloads leave no thread and no descriptor behind`, async (t) => {
  const serving = await serve(t, {
    repositories: [await churnRepository(t)],
    flags: ['--model-control-mode=explicit'],
  })
  await churn(serving, WARM_UP)
  const before = await heldBy(serving)
  await churn(serving, TIMES / 2)
  let grown = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS && grown >= GROWTH_BYTES; round += 1) {
    const { residentBytes } = await heldBy(serving)
    await churn(serving, TIMES / 2)
    grown = (await heldBy(serving)).residentBytes - residentBytes
    t.comment(`${grown >> 10} KiB more`)
  }
  // Threads end after they were told to; connections of ours close a little later too.
  await until('threads and descriptors are as many as before', async () => {
    const { threads, descriptors } = await heldBy(serving)
    return threads <= before.threads && descriptors <= before.descriptors
  })
  t.ok(grown < GROWTH_BYTES, `the last ${TIMES / 2} took ${grown >> 10} KiB more`)
})
