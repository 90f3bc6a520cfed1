import { KubeError } from '@tutti/kube'
import t from 'tap'
import { isRefusal } from './refusal.ts'

await t.test('what only a person can set right is a refusal', async (t) => {
  const CASES: readonly (readonly [number, readonly { readonly reason: string }[], boolean])[] = [
    [422, [], true],
    [403, [], true],
    [403, [{ reason: 'NamespaceTerminating' }], false],
    [409, [], false],
    [500, [], false],
    [0, [], false],
  ]
  for (const [status, causes, wanted] of CASES) {
    const error = new KubeError({ status, reason: 'x', message: 'm', causes })
    t.equal(isRefusal(error), wanted, `${status} ${causes.map(({ reason }) => reason).join()}`)
  }
  t.notOk(isRefusal(new Error('x')))
})
