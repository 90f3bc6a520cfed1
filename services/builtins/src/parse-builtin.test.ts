import * as fc from 'fast-check'
import t from 'tap'
import { BUILTINS } from './catalogue.ts'
import { parseBuiltin } from './parse-builtin.ts'

await t.test('options stand beside the name and get their defaults', async (t) => {
  t.same(parseBuiltin({ name: 'softmax' }), {
    step: { name: 'softmax', options: { axis: -1 } },
    faults: [],
  })
})

await t.test('a fault names the field, what it has and what is wanted', async (t) => {
  for (const [given, fault] of [
    [null, { path: '', got: 'null', want: 'an object with a name' }],
    [[1], { path: '', got: '[1]', want: 'an object with a name' }],
    [{ axis: 1 }, { path: 'name', got: 'nothing', want: /^the name of a built-in: one of \w+, / }],
    [
      { name: 'sofmax' },
      { path: 'name', got: '"sofmax"', want: 'the name of a built-in: did you mean softmax?' },
    ],
    [
      { name: 'softmax', axes: 1 },
      { path: 'axes', got: 'an unknown option', want: 'an option: did you mean axis?' },
    ],
    [
      { name: 'softmax', temperature: 1 },
      { path: 'temperature', got: 'an unknown option', want: 'one of axis' },
    ],
    [
      { name: 'softmax', axis: 1.5 },
      { path: 'axis', got: '1.5', want: 'a whole number' },
    ],
    [
      { name: 'softmax', axis: 99 },
      { path: 'axis', got: '99', want: 'at most 7' },
    ],
    [{ name: 'cast' }, { path: 'datatype', got: 'nothing', want: /^one of FP16, / }],
    [
      { name: 'normalise', mean: [1, 'a'] },
      { path: 'mean[1]', got: '"a"', want: 'a finite number' },
    ],
    [
      JSON.parse('{"name":"softmax","__proto__":{"axis":1}}'),
      { path: '__proto__', got: 'an unknown option', want: 'one of axis' },
    ],
    [
      { name: 'labelLookup', file: '' },
      { path: 'file', got: '""', want: 'a length of at least 1' },
    ],
    [
      { name: 'resize', width: 2 ** 53, height: 1 },
      { path: 'width', got: '9007199254740992', want: /^(a whole number|at most)/ },
    ],
    [
      { name: 'normalise', std: [] },
      { path: 'std', got: '[]', want: 'a number of elements of at least 1' },
    ],
  ] as const) {
    const { faults } = parseBuiltin(given)
    t.equal(faults.length, 1, JSON.stringify(given))
    t.match(faults, [fault], JSON.stringify(given))
  }
})

await t.test('any JSON is a step or has faults, and nothing is thrown', async (t) => {
  const names = fc.constantFrom<string>(...BUILTINS.map(({ name }) => name))
  const keys = BUILTINS.flatMap(({ options }) => Object.keys(options.shape))
  const options = fc.dictionary(fc.oneof(fc.constantFrom(...keys), fc.string()), fc.jsonValue())
  const given = fc.oneof(
    fc.jsonValue(),
    fc.tuple(fc.oneof(names, fc.string()), options).map(([name, rest]) => ({ ...rest, name })),
  )
  fc.assert(
    fc.property(given, (value) => {
      const { step, faults } = parseBuiltin(value)
      if (step === undefined) {
        return (
          faults.length > 0 &&
          faults.every(({ path, got, want }) => `${path}${got}${want}`.length < 4000 && want !== '')
        )
      }
      // A step that was read is read again as the same.
      const again = parseBuiltin({ ...step.options, name: step.name })
      return JSON.stringify(again.step) === JSON.stringify(step)
    }),
    { numRuns: 1000 },
  )
  t.pass()
})
