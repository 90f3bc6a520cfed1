import { createRequire } from 'node:module'
import t from 'tap'
import { CelProgram } from './cel-program.ts'
import { toCelValue } from './cel-value.ts'

const evaluate = (text: string, self: unknown) =>
  new CelProgram(text).evaluate({ self: toCelValue(self) })

const { cache } = createRequire(import.meta.url)
const isLoaded = (): boolean => Object.keys(cache).some((path) => path.includes('cel-js'))

await t.test('the library is loaded for the first program that is evaluated', async (t) => {
  const program = new CelProgram('1 + 1')
  t.notOk(isLoaded())
  t.equal(program.evaluate({}), 2n)
  t.ok(isLoaded())
})

await t.test('an expression sees JSON with the types of CEL', async (t) => {
  const cases: [text: string, self: unknown, result: unknown][] = [
    ['type(self) == int && self == 3', 3, true],
    ['type(self) == double && self == 0.5', 0.5, true],
    ['has(self.a) && !has(self.b) && !has(self.c)', { a: 0, b: undefined }, true],
    ['has(self.constructor) || has(self.toString)', {}, false],
    ["self.all(key, key in ['constructor', '__proto__'])", JSON.parse('{"__proto__": 1}'), true],
    ['self.constructor + self.name', { constructor: 'a', name: 'b' }, 'ab'],
    ['self.size()', '\u{1F600}', 1n],
    ['self.map(one, bytes(one).size()).sum()', ['é', 'a'], 3n],
    ['self.sum()', [], 0n],
    ["duration(self) > duration('999us')", '1ms', true],
    ['self == null', null, true],
    ['self[1] ? 1 : 2', [true, false], 2n],
  ]
  for (const [text, self, result] of cases) t.equal(evaluate(text, self), result, text)
})

await t.test('a value may be deeper than the stack', async (t) => {
  let deep: unknown = 1
  for (let level = 0; level < 100_000; level += 1) deep = level % 2 === 0 ? [deep] : { deep }
  t.equal(evaluate('has(self.deep)', deep), true)
})

await t.test('what cannot be evaluated throws, each time', async (t) => {
  for (const text of ['self.', 'self.absent', "self.name + 1 == 'a'", 'other == 1']) {
    const program = new CelProgram(text)
    const self = toCelValue({ name: 'a' })
    t.throws(() => program.evaluate({ self }), text)
    t.throws(() => program.evaluate({ self }), text)
  }
})
