import * as fc from 'fast-check'
import t from 'tap'
import { printable } from './printable.ts'

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
