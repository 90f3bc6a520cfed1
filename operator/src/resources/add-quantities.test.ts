import { toAmount } from '@tutti/api'
import { array, assert, constantFrom, nat, property, tuple } from 'fast-check'
import t from 'tap'
import { addQuantities } from './add-quantities.ts'

const CASES: readonly (readonly [said: readonly (string | number)[], wanted: string])[] = [
  [['100m', '100m'], '200m'],
  [['500m', '0.5'], '1'],
  [[1, 1.5], '2500m'],
  [['256Mi', '256Mi'], '512Mi'],
  [['1Gi', '512Mi'], '1536Mi'],
  [['1Gi', '3Gi'], '4Gi'],
  [['0.5Gi', '0.5Gi'], '1Gi'],
  [['1k', '1000'], '2k'],
  [['1e3', '2E3'], '3k'],
  [['1E', '1E'], '2E'],
  [['1Gi', '1G'], '2073741824'],
  [['1n', '1u'], '1001n'],
  [['0', 0], '0'],
]

for (const [said, wanted] of CASES) {
  await t.test(said.join(' + '), async (t) => t.equal(addQuantities(said), wanted))
}

await t.test('a sum is what its parts are, in whatever units', async () => {
  const unit = constantFrom('', 'm', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi')
  const one = tuple(nat(4000), unit).map(([number, suffix]) => `${number}${suffix}`)
  assert(
    property(array(one, { minLength: 1, maxLength: 5 }), (said) => {
      const wanted = said.reduce((sum, text) => sum + (toAmount(text) ?? Number.NaN), 0)
      const got = toAmount(addQuantities(said)) ?? Number.NaN
      return Math.abs(got - wanted) <= 1e-9 * Math.max(1, wanted)
    }),
  )
})
