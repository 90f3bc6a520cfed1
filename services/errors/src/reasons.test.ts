import t from 'tap'
import { helpAddress } from './addresses.ts'
import { STATUS_CODES } from './codes.ts'
import { REASONS } from './reasons.ts'

await t.test('the address of a reason is one, whatever the reason', async (t) => {
  t.equal(helpAddress('QUEUE_FULL'), 'https://tutti.dev/docs/errors/#queue_full')
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
