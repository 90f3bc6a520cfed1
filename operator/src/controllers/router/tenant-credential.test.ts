import { KubeError } from '@tutti/kube'
import t from 'tap'
import { TerminalError } from '../../runtime/terminal-error.ts'
import { isPassing, toCredentialTrouble } from './tenant-credential.ts'

const reason = 'CredentialMissing'
const lost = new KubeError({ status: 0, reason: 'NoConnection', message: 'GET /x: reset' })
const refused = new KubeError({ status: 403, reason: 'Forbidden', message: 'exceeded quota: few' })

await t.test('a failure that passes takes nothing away that is there', async (t) => {
  for (const error of [lost, new Error('x')]) {
    t.ok(isPassing(error))
    t.equal(toCredentialTrouble(error, true), undefined)
  }
})

await t.test(
  'without a credential the condition says what failed, and the key is tried again',
  async (t) => {
    const message = 'not made yet, and tried again: GET /x: reset'
    t.same(toCredentialTrouble(lost, false), { reason, message })
    const unknown = { reason, message: /tried again: the credential for NATS cannot be made/ }
    t.match(toCredentialTrouble(new Error('x'), false), unknown)
  },
)

await t.test(
  'a fault that a person must repair is reported, with or without a credential',
  async (t) => {
    for (const isThere of [true, false]) {
      t.same(toCredentialTrouble(refused, isThere), { reason, message: 'exceeded quota: few' })
      t.same(toCredentialTrouble(new TerminalError('keys'), isThere), { reason, message: 'keys' })
      t.notOk(isPassing(refused))
    }
  },
)
