import { EMPTY_CONTEXT, type Parameter } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { contextJson } from './request-context.ts'

const HALF_MEBIBYTE = 2 ** 19
/** Length of a control character in JSON, which is the longest: `\u0001`. */
const ESCAPED_CHARACTERS = 6

function jsonOf(parameters: ReadonlyMap<string, Parameter>, id = ''): string {
  const context = { ...EMPTY_CONTEXT, id, parameters }
  return contextJson({ context, inputs: [], requestedOutputs: [], batchSize: 0 })
}

await t.test('parameters stand behind a line break, as the JSON that the model gets', (t) => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\n', '"\\', '\u0001\u2028'))
  fc.assert(
    fc.property(fc.dictionary(text, text), text, (given, id) => {
      const entries = Object.entries(given)
      const parameters = new Map(
        entries.map(([key, value]) => [key, { kind: 'string' as const, value }]),
      )
      const [own = '', json = '{}', ...more] = jsonOf(parameters, id).split('\n')
      t.same(more, [])
      t.same(own === '' ? {} : JSON.parse(own), id === '' ? {} : { id })
      t.same(Object.entries(JSON.parse(json)), entries)
    }),
    { numRuns: 300 },
  )
  t.end()
})

await t.test('no parameter becomes longer than the escapes of JSON make it', (t) => {
  for (const unit of ['\u0001', '"', '\\', 'x', 'é', '\u2028']) {
    const value = unit.repeat(HALF_MEBIBYTE / Buffer.byteLength(unit))
    const json = jsonOf(new Map([['p', { kind: 'string', value }]]))
    const most = ESCAPED_CHARACTERS * value.length + 100
    t.ok(json.length <= most, `${json.length} characters of U+${unit.codePointAt(0)?.toString(16)}`)
  }
  t.end()
})
