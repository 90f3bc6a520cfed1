import t from 'tap'
import { DescriptionLimit } from './description-limit.ts'

await t.test(
  'descriptions are bounded together, and a description that goes frees its bytes',
  async (t) => {
    const limit = new DescriptionLimit(20)
    limit.take('a', 'x'.repeat(8))
    limit.take('b', 'x'.repeat(8))
    t.throws(() => limit.take('c', 'x'), {
      reason: 'OVERLOADED',
      message: 'description of 3 bytes beside 20 of other steps, want at most 20 in all',
      details: { replica: 'c' },
    })
    t.throws(() => limit.take('a', 'x'.repeat(9)), {
      reason: 'OVERLOADED',
      message: /want at most 20/,
    })
    limit.take('a', 'x')
    limit.take('c', 'x'.repeat(5))
    limit.remove('b')
    limit.remove('unknown')
    limit.take('d', 'x'.repeat(8))
    t.throws(() => limit.take('e', null), { reason: 'OVERLOADED', message: /want at most 20/ })
  },
)
