// needs: python
import { slopeOf } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { held, PythonChurn, settles, WITHOUT_CHURN } from '../testing/python-churn.ts'

t.setTimeout(0)

const ROUNDS = 20
const LOADS = 10_000
const CRASHES = 1000
/** Bytes per 1000 of them, over the second half. */
const SLOPE_BYTES = 1024 * 1024

await t.test(
  '10,000 loads and unloads and 1,000 crashes of Python models',
  { skip: WITHOUT_CHURN },
  async (t) => {
    const churn = await PythonChurn.open(t)
    await churn.loads(LOADS / ROUNDS)
    const before = await held()
    await checkGrowth(t, `loads`, LOADS, () => churn.loads(LOADS / ROUNDS))
    await settles(t, before, `${LOADS} loads and unloads`)
    const model = await churn.load()
    const loaded = await held()
    const perRound = CRASHES / ROUNDS
    await churn.crashes(t, model, perRound)
    await checkGrowth(t, 'crashes', CRASHES, () => churn.crashes(t, model, perRound))
    await settles(t, loaded, `${CRASHES} crashes`)
    await model.close()
    await settles(t, before, 'the end')
  },
)

async function checkGrowth(
  t: Test,
  what: string,
  times: number,
  round: () => Promise<void>,
): Promise<void> {
  const points: (readonly [number, number])[] = []
  for (let i = 1; i <= ROUNDS; i += 1) {
    await round()
    const { rss } = process.memoryUsage()
    points.push([(i * times) / ROUNDS, rss])
    t.comment(`${(i * times) / ROUNDS} ${what}: ${rss >> 20} MiB resident`)
  }
  const slope = slopeOf(points.slice(ROUNDS / 2)) * 1000
  t.ok(slope < SLOPE_BYTES, `${Math.round(slope / 1024)} KiB per 1,000 ${what} in the second half`)
}
