import t from 'tap'
import { ERROR_TEXTS } from './error-texts.mjs'
import { writeErrors } from './errors.mjs'

const REASON = { code: 'INTERNAL', meaning: 'x', status: 500 }
const ALL = Object.fromEntries(
  Object.values(ERROR_TEXTS).flatMap((texts) => Object.keys(texts).map((name) => [name, REASON])),
)

await t.test('a reason without a text, and a text without a reason, are named', async (t) => {
  const root = t.testdir({ docs: {} })
  t.throws(() => writeErrors(root, { ...ALL, UNHEARD: REASON }), { message: /reason UNHEARD has not/ })
  const { INTERNAL: _, ...others } = ALL
  t.throws(() => writeErrors(root, others), { message: /there is no reason INTERNAL/ })
})
