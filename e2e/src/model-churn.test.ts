import t from 'tap'
import { churn, churnRepository, heldBy } from './control-churn.ts'
import { serve } from './serving.ts'
import { until } from './until.ts'

t.setTimeout(900_000)

const WARM_UP = 50
const TIMES = 200
/** Of the second half over the first: a heap that has not found its size yet grows by tens of MiB. The soak measures the slope. */
const GROWTH_BYTES = 96 * 1024 * 1024

await t.test('200 loads and unloads leave no thread and no descriptor behind', async (t) => {
  const serving = await serve(t, {
    repositories: [await churnRepository(t)],
    flags: ['--model-control-mode=explicit'],
  })
  await churn(serving, WARM_UP)
  const before = await heldBy(serving)
  await churn(serving, TIMES / 2)
  const middle = await heldBy(serving)
  await churn(serving, TIMES / 2)
  // Threads end after they were told to; connections of ours close a little later too.
  await until('threads and descriptors are as many as before', async () => {
    const { threads, descriptors } = await heldBy(serving)
    return threads <= before.threads && descriptors <= before.descriptors
  })
  const after = await heldBy(serving)
  const grown = after.residentBytes - middle.residentBytes
  t.comment(`resident MiB: ${[before, middle, after].map((h) => h.residentBytes >> 20).join(' ')}`)
  t.ok(grown < GROWTH_BYTES, `the second half took ${grown >> 10} KiB more`)
})
