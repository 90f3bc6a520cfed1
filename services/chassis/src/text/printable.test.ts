import * as fc from 'fast-check'
import t from 'tap'
import { printable } from './printable.ts'
import { renderJson, renderJsonLine } from './render-json.ts'

await t.test('characters that a terminal obeys are escaped, others stay', (t) => {
  t.equal(
    printable('a\u001b[31m\u202e\u0085\n\u{e0001}Ü "'),
    String.raw`a\u001b[31m\u202e\u0085\u000a\udb40\udc01Ü "`,
  )
  t.end()
})

await t.test('JSON stays the same JSON', (t) => {
  const someText = fc.string({
    unit: fc.constantFrom('\u001b', '\u009b', '\u{e0001}', '\\', '"', 'a'),
  })
  fc.assert(
    fc.property(someText, (text) => {
      const printed = printable(JSON.stringify({ [text]: text }))
      return JSON.parse(printed)[text] === text && !/\p{Cc}|\p{Cf}/u.test(printed)
    }),
  )
  t.end()
})

await t.test('results are the same JSON, without control characters but line ends', async (t) => {
  const result = { 'a\u009b': ['\u202e\u0085\n\u2028'] }
  for (const render of [renderJson, renderJsonLine]) {
    const text = render(result)
    t.same(JSON.parse(text), result)
    t.notMatch(text.replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u)
  }
  t.equal(renderJsonLine(result).indexOf('\n'), renderJsonLine(result).length - 1)
})
