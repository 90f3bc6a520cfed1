import * as fc from 'fast-check'
import t from 'tap'
import { chooseEncoding } from './content-encoding.ts'

/** Encodings that a Triton 2.51 answers with, but for those with blanks around `;` and capital letters, which it does not read. */
const CHOICES = [
  ['gzip', 'gzip'],
  ['gzip, deflate', 'gzip'],
  ['deflate, gzip', 'deflate'],
  ['gzip;q=0.5, deflate', 'deflate'],
  ['gzip;q=0.5, deflate;q=0.5', 'gzip'],
  ['gzip;q=0, deflate;q=0.1', 'deflate'],
  ['gzip;q=0.000', 'identity'],
  ['identity, gzip', 'identity'],
  ['identity;q=0.5, gzip;q=0.8', 'gzip'],
  ['identity;q=0.9, gzip;q=0.8', 'identity'],
  ['br;q=1.0, gzip;q=0.2', 'gzip'],
  ['gzip;q=2', 'gzip'],
  ['gzip;q=x', 'identity'],
  ['gzip;q=-1', 'identity'],
  ['gzip;q=', 'identity'],
  ['gzip;level=1;q=0.3, deflate;q=0.5', 'deflate'],
  ['gzip;;q=0.1, deflate;q=0.2', 'deflate'],
  ['gzip;q=.5,,deflate;q=.6', 'deflate'],
  ['*', 'identity'],
  ['', 'identity'],
  [undefined, 'identity'],
  ['GZIP; Q=0.3 , deflate ; q=0.5', 'deflate'],
] as const

await t.test('the encoding with the greatest weight is chosen', (t) => {
  for (const [header, want] of CHOICES) t.equal(chooseEncoding(header), want, String(header))
  t.end()
})

await t.test('no other encoding has a greater weight than the one chosen', (t) => {
  const names = fc.constantFrom('gzip', 'deflate', 'identity', 'br')
  const items = fc.array(fc.tuple(names, fc.integer({ min: 0, max: 10 })), { maxLength: 5 })
  const property = fc.property(items, (list) => {
    const chosen = chooseEncoding(list.map(([name, tenth]) => `${name};q=${tenth / 10}`).join(','))
    const known = list.filter(([name, tenth]) => name !== 'br' && tenth > 0)
    const most = Math.max(0, ...known.map(([, tenth]) => tenth))
    return chosen === (known.find(([, tenth]) => tenth === most)?.[0] ?? 'identity')
  })
  fc.assert(property, { numRuns: 500 })
  t.end()
})
