import { slopeOf, until } from '@tutti/chassis/testing'
import t from 'tap'
import { churn, churnRepository, heldBy } from '../control-churn.ts'
import { collectGarbage } from '../request-path/inspected-process.ts'
import { serve } from '../serving.ts'

t.setTimeout(0)

const ROUNDS = 20
const PER_ROUND = 500
/** Bytes per 1000 loads and unloads, over the second half. */
const SLOPE_BYTES = 1024 * 1024

await t.test('10,000 loads and unloads of an ensemble and its model', async (test) => {
  const serving = await serve(test, {
    repositories: [await churnRepository(test)],
    flags: ['--model-control-mode=explicit'],
    env: { NODE_OPTIONS: '--inspect=127.0.0.1:0' },
  })
  await churn(serving, PER_ROUND)
  const before = await heldBy(serving)
  const points: (readonly [number, number])[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    await churn(serving, PER_ROUND)
    await collectGarbage(serving.process)
    const { residentBytes } = await heldBy(serving)
    points.push([round * PER_ROUND, residentBytes])
    test.comment(`${round * PER_ROUND} loads: ${residentBytes >> 20} MiB resident`)
  }
  const slope = slopeOf(points.slice(ROUNDS / 2)) * 1000
  test.ok(slope < SLOPE_BYTES, `${Math.round(slope / 1024)} KiB per 1,000 loads in the second half`)
  await until('threads and descriptors are as many as before', async () => {
    const { threads, descriptors } = await heldBy(serving)
    return threads <= before.threads && descriptors <= before.descriptors
  })
})
