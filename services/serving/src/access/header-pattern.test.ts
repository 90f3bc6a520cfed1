import t from 'tap'
import { compileHeaderPattern } from './header-pattern.ts'

/** A pattern, names that a Triton 2.51 finds with it, and names that it does not find. */
const PATTERNS = [
  ['X-Fw-.*', ['X-Fw-A', 'x-FW-a'], ['y-x-fw-a', 'x-fw']],
  ['(?i)x-fw-.*', ['X-FW-A'], ['y']],
  ['(?-i)X-Fw-.*', ['X-Fw-A'], ['x-fw-a', 'X-FW-A']],
  ['x-(?-i)Fw-.*', ['X-Fw-A', 'x-Fw-b'], ['x-fw-a']],
  ['X-(?-i:fw)-A', ['x-fw-a'], ['X-Fw-A']],
  ['(?i)x-.*|(?-i)Y', ['X-FW', 'Y'], ['y']],
  ['a(?-i)B|C', ['AB', 'C'], ['ab', 'c', 'aC']],
  ['(a(?-i)B)c', ['aBC', 'ABc'], ['abc']],
  ['(?s-i)X-Fw-.*', ['X-Fw-A'], ['x-fw-a']],
  ['(?U)X-F.*', ['x-fw'], ['y']],
  ['(?P<n>X)-(?:Fw|Gw)', ['x-gw'], ['x-']],
  [String.raw`\AX-Fw-[[:alpha:]]+\z`, ['X-Fw-A'], ['X-Fw-1']],
  [String.raw`\QX.Fw\E-.*`, ['x.fw-'], ['x-fw-']],
  ['[]x]-[^-]', [']-a', 'x-a'], ['x--']],
] as const

await t.test('patterns of RE2 match whole names, whatever their case', (t) => {
  for (const [pattern, found, others] of PATTERNS) {
    const compiled = compileHeaderPattern('--p', pattern)
    for (const name of found) t.ok(compiled.test(name), `${pattern} finds ${name}`)
    for (const name of others) t.notOk(compiled.test(name), `${pattern} does not find ${name}`)
  }
  t.end()
})

await t.test('a pattern that RE2 refuses is refused with its reason', (t) => {
  for (const [pattern, why] of [
    ['(', /parentheses do not match/],
    ['a)', /parentheses do not match/],
    ['(?=x)y', /groups that look around/],
    [String.raw`(a)\1`, /references to groups/],
    ['[[:nope:]]', /unknown class \[:nope:\]/],
    ['*a', /Nothing to repeat/],
    ['[a', /Unterminated character class/],
  ] as const) {
    const refused = () => compileHeaderPattern('--p', pattern)
    t.throws(refused, { reason: 'FLAG_INVALID', message: why }, pattern)
  }
  t.end()
})
