import t from 'tap'
import { seededRandom } from '../hostile.ts'
import { judge, type Measured, trendOf } from './flatness.ts'

const MIB = 2 ** 20

/** Memory as it is measured: noise of some MiB around a line, and now and then far more. */
function memory(o: { readonly rounds: number; readonly slope: number; readonly seed: number }) {
  const random = seededRandom(o.seed)
  return Array.from({ length: o.rounds }, (_, round) => {
    const outlier = random() < 0.1 ? 50 * MIB : 0
    return [round, 200 * MIB + o.slope * round + 6 * MIB * random() + outlier] as const
  })
}

const BOUND = 64 * 1024

await t.test('a line is found exactly, whatever its outliers are', async (t) => {
  const line: Measured = Array.from({ length: 20 }, (_, i) => [i, i % 7 === 3 ? 1e9 : 5 + 2 * i])
  t.equal(trendOf([line])?.perRound, 2)
  t.equal(trendOf([line, line])?.perRound, 2, 'of two pieces')
})

await t.test('pieces are compared within themselves only', async (t) => {
  const low: Measured = Array.from({ length: 20 }, (_, i) => [i, 100])
  const high = low.map(([x]) => [x, 900] as const)
  t.match(trendOf([low, high]), { perRound: 0, least: 0, most: 0, points: 40 })
})

await t.test('what leaks is growing, what does not is not', async (t) => {
  for (let seed = 0; seed < 40; seed += 1) {
    const flat = trendOf([memory({ rounds: 200, slope: 0, seed })])
    t.equal(judge(flat, BOUND), 'flat', `flat, ${seed}`)
    const leak = trendOf([memory({ rounds: 200, slope: 2 * BOUND, seed })])
    t.equal(judge(leak, BOUND), 'growing', `a leak, ${seed}`)
    const pieces = [0, 1, 2, 3, 4].map((i) =>
      memory({ rounds: 60, slope: 6 * BOUND, seed: seed + i }),
    )
    t.equal(judge(trendOf(pieces), BOUND), 'growing', `a leak in pieces, ${seed}`)
  }
})

await t.test('one descriptor in fifty rounds is seen in a day', async (t) => {
  const leak: Measured = Array.from({ length: 500 }, (_, i) => [i, 40 + Math.floor(i / 50)])
  t.equal(judge(trendOf([leak]), 0.01), 'growing')
})

await t.test('few rounds decide nothing', async (t) => {
  t.equal(
    trendOf([
      [
        [0, 1],
        [1, 1],
        [2, 1],
      ],
    ]),
    undefined,
  )
  t.equal(judge(undefined, 1), 'undecided')
  t.equal(judge(trendOf([memory({ rounds: 6, slope: 0, seed: 1 })]), BOUND), 'undecided')
})
