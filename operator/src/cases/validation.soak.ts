import { testSeed } from '@tutti/chassis/testing'
import t from 'tap'
import { compareResults } from '../testing/validation/compare-results.ts'

t.setTimeout(0)

const ROUNDS = 50
const NAMESPACES = 1000

await t.test(`tutti validate says what the operator will say, ${ROUNDS} rounds`, async (t) => {
  const firstSeed = testSeed()
  for (let round = 0; round < ROUNDS; round += 1) {
    await t.test(`round ${round}`, async (t) => {
      const o = { firstSeed: firstSeed + round * NAMESPACES, count: NAMESPACES }
      await compareResults(t, { ...o, hasRepository: round % 2 === 0 })
    })
  }
})
