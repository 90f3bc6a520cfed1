import { testSeed } from '@tutti/chassis/testing'
import t from 'tap'
import { residentBytes } from '../control-churn.ts'
import { sendBadRequests, servesRightBytes } from '../hostile.ts'
import { serve } from '../serving.ts'
import { copyModels } from '../temp-repository.ts'

t.setTimeout(0)

const SEED = testSeed()
const ROUNDS = 10
const PER_ROUND = 10_000
/** Until the heap has its size. */
const WARM_UP_ROUNDS = 4
/** Limit of the growth of the second half of the rounds after the warm-up over the first. */
const GROWTH_BYTES = 48 * 1024 * 1024

await t.test('memory stays flat over 100,000 bad requests', async (test) => {
  const serving = await serve(test, {
    repositories: [await copyModels(test, ['ens_chain', 'add_one_batch'])],
  })
  const resident: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await sendBadRequests(test, serving, { count: PER_ROUND, seed: SEED + round })
    resident.push(await residentBytes(serving))
  }
  test.comment(`resident MiB: ${resident.map((bytes) => Math.round(bytes / 2 ** 20)).join(' ')}`)
  const warm = resident.slice(WARM_UP_ROUNDS)
  const half = warm.length / 2
  const grown = Math.max(...warm.slice(half)) - Math.max(...warm.slice(0, half))
  test.ok(grown < GROWTH_BYTES, `the second half took ${Math.round(grown / 1024)} KiB more`)
  await servesRightBytes(test, serving)
})
