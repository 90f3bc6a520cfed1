import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { STATUS_CODES } from './codes.ts'
import { REASONS } from './reasons.ts'

const README = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8')

await t.test('the table of reasons in the README is the catalogue', async (t) => {
  const rows = README.split('\n').flatMap((line) => {
    const match = /^\| `([A-Z_]+)` +\| ([A-Z_]+) +\| (.+?) +\|$/.exec(line)
    return match === null ? [] : [{ reason: match[1], code: match[2], meaning: match[3] }]
  })
  const catalogue = Object.entries(REASONS).map(([reason, { code, meaning }]) => ({
    reason,
    code,
    meaning,
  }))
  t.same(rows, catalogue)
})

await t.test('every reason has a code of the closed set and a meaning of its own', async (t) => {
  const meanings = new Set<string>()
  for (const [reason, { code, meaning }] of Object.entries(REASONS)) {
    t.ok(Object.hasOwn(STATUS_CODES, code), `${reason} has the code ${code}`)
    t.notOk(meanings.has(meaning), `${reason} says what no other reason says`)
    meanings.add(meaning)
  }
})

await t.test('status codes have the numbers of gRPC, 1 to 16 without a gap', async (t) => {
  const numbers = Object.values(STATUS_CODES).toSorted((a, b) => a - b)
  t.same(
    numbers,
    Array.from({ length: 16 }, (_, i) => i + 1),
  )
})
