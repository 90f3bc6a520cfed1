import * as fc from 'fast-check'
import t from 'tap'
import { Condition, type Elements, type ElementType } from './index.ts'

const TYPES = new Map<string, ElementType>([
  ['small.score', 'double'],
  ['count', 'int'],
  ['level', 'uint'],
  ['words', 'string'],
  ['flags', 'bool'],
  ['empty', 'int'],
])
const TENSORS = new Map<string, Elements>([
  ['small.score', [0.5, 2]],
  ['count', [3n]],
  ['level', [7n]],
  ['words', ['cat', 'dog']],
  ['flags', [true, false]],
  ['empty', []],
])
const PARAMETERS = new Map([['tier', 'gold']])

function evaluate(text: string): boolean {
  return new Condition(text).compile(TYPES).evaluate({ tensors: TENSORS, parameters: PARAMETERS })
}

await t.test('a condition sees elements of tensors and parameters', (t) => {
  const table: readonly (readonly [text: string, value: boolean])[] = [
    ['tensors["small.score"][0] < 0.8', true],
    ["tensors['small.score'][1] < 0.8", false],
    ['tensors["small.score"][0] < 1', true],
    ['"tier" in parameters && parameters["tier"] == "gold"', true],
    ['"none" in parameters && parameters["none"] == 1', false],
    ['tensors["count"][0] / 2 == 1', true],
    ['tensors["level"][0] / 2u == 3u', true],
    ['"dog" in tensors["words"]', true],
    ['"1e5" in tensors["words"] || \'a\\\'1e5\' in tensors["words"]', false],
    ['tensors["flags"].exists(flag, flag)', true],
    ['size(tensors["small.score"]) == 2', true],
    ['tensors["small.score"].all(x, x / 2.0 < 1.1)', true],
  ]
  for (const [text, value] of table) t.equal(evaluate(text), value, text)
  t.same(new Condition('tensors["a"][0] == tensors["b"][0] || tensors["a"][1]').tensors, ['a', 'b'])
  t.end()
})

await t.test('what does not fit is found before anything is evaluated', (t) => {
  const table: readonly (readonly [text: string, problem: RegExp])[] = [
    ['tensors["small.score"][0] < "a"', /^no such overload: double < string$/],
    ['tensors["level"][0] == 1', /uint == int/],
    ['tensors["count"][0]', /its value is of the type int, want bool/],
    ['foo', /Unknown variable: foo/],
    ['tensors', /want tensors\["NAME"\]/],
    ['tensors[parameters["x"]][0] > 1', /takes the name of a tensor in quotes/],
    ['tensors["words"][0].matches("(a+)+b")', /'matches' is not offered/],
    [
      'tensors["count"].exists(a, tensors["count"].exists(b, a < b))',
      /stands within another macro/,
    ],
    [`${'('.repeat(25)}true${')'.repeat(25)}`, /Exceeded maxDepth/],
    [Array.from({ length: 120 }, () => 'true').join('&&'), /Exceeded max(AstNodes|Depth)/],
    ['tensors["count"][0] <', /Unexpected token/],
    ['tensors["small.score"][0] < 1.5e-3', /got the number 1.5e-3, want one without an exponent/],
  ]
  for (const [text, problem] of table) {
    t.throws(() => new Condition(text).compile(TYPES), { message: problem }, text)
  }
  t.end()
})

await t.test('a condition without a value is an error, and never false', (t) => {
  const table: readonly (readonly [text: string, problem: RegExp])[] = [
    ['1.0 / 0.0 > 2.0', /division by zero/],
    ['tensors["count"][0] / 0 == 1', /division by zero/],
    ['tensors["count"][0] % 0 == 1', /modulo by zero/],
    ['tensors["level"][0] / 0u == 1u', /division by zero/],
    ['tensors["small.score"][5] > 1.0', /^index out of bounds, index 5 >= size 2$/],
    ['tensors["empty"][0] > 1', /^index out of bounds, index 0 >= size 0$/],
    ['parameters["none"] == 1', /^the parameter "none" is absent$/],
    ['parameters["tier"] > 3', /> int/],
    ['parameters["tier"]', /its value is no bool/],
    ['tensors["unknown"][0] > 1.0', /the tensor "unknown" is absent/],
  ]
  for (const [text, problem] of table) {
    t.throws(() => evaluate(text), { message: problem }, text)
  }
  const nan = new Map<string, Elements>([['small.score', [1, Number.NaN]]])
  const condition = new Condition('tensors["small.score"][0] < 2.0').compile(TYPES)
  t.throws(() => condition.evaluate({ tensors: nan, parameters: new Map() }), {
    message: 'tensors["small.score"][1] is NaN',
  })
  t.end()
})

await t.test('no text does anything but give a condition or an error of one line', (t) => {
  const pieces =
    'tensors ["count"] [0] parameters .exists(x,x) ( ) / 0 1.5 && || ! ? : " \' size == < matches { } in -'
  const piece = fc.constantFrom(' ', ...pieces.split(' '))
  const text = fc.oneof(
    fc.string(),
    fc.array(piece, { maxLength: 30 }).map((all) => all.join('')),
  )
  const property = (given: string): void => {
    try {
      evaluate(given)
    } catch (error) {
      t.ok(error instanceof Error && !error.message.includes('\n'), given)
    }
  }
  fc.assert(fc.property(text, property), { numRuns: 500 })
  t.end()
})
