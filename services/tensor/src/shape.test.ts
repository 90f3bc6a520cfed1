import * as fc from 'fast-check'
import t from 'tap'
import { formatElementCount, formatShape } from './error-texts.ts'
import { elementCount, shapeMatches } from './tensor.ts'

await t.test(
  'the element count is the product, 1 for a scalar, 0 with an empty extent',
  async (t) => {
    t.equal(elementCount([]), 1)
    t.equal(elementCount([2, 3, 4]), 24)
    t.equal(elementCount([2, 0, 4]), 0)
    t.ok(elementCount([2 ** 40, 2 ** 40]) > Number.MAX_SAFE_INTEGER)
    t.equal(formatElementCount([2 ** 53 - 1, 3]), '27021597764222973')
    t.equal(formatElementCount([]), '1')
  },
)

await t.test('shapes print as Triton prints them', async (t) => {
  t.equal(formatShape([1, -1, 3]), '[1,-1,3]')
  t.equal(formatShape([]), '[]')
})

await t.test('-1 on either side matches any extent, ranks must agree', async (t) => {
  const cases: [readonly number[], readonly number[], boolean][] = [
    [[], [], true],
    [[-1, 3], [7, 3], true],
    [[7, 3], [-1, 3], true],
    [[-1], [-1], true],
    [[-1, 3], [7, 4], false],
    [[-1], [7, 3], false],
    [[1, 16], [16], false],
    [[-1], [0], true],
  ]
  for (const [declared, shape, expected] of cases) {
    const title = `${formatShape(declared)} and ${formatShape(shape)}`
    t.equal(shapeMatches(declared, shape), expected, title)
  }
})

await t.test('matching is symmetric, and every shape matches itself', async (t) => {
  const shape = fc.array(fc.integer({ min: -1, max: 3 }), { maxLength: 4 })
  fc.assert(
    fc.property(
      shape,
      shape,
      (a, b) => shapeMatches(a, a) && shapeMatches(a, b) === shapeMatches(b, a),
    ),
  )
  t.pass('held for every pair tried')
})
