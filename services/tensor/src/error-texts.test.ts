import t from 'tap'
import { requestPrefix } from './error-texts.ts'

await t.test("messages name their request in Triton's words", async (t) => {
  t.equal(requestPrefix('r-1'), '[request id: r-1] ')
  t.equal(requestPrefix(''), '[request id: <id_unknown>] ')
})
