import type { Client } from '@tutti/kube'
import t from 'tap'
import { kubeError, memoryClient } from '../../testing/memory-client.ts'
import { findClaimRefusal } from './claim-refusal.ts'

const { signal } = new AbortController()
const CLAIMS = [{ name: 'gpu', resourceClaimName: 'both' }]

/** A server whose answer to a read of claims is this error. */
const failing = (code: number): Pick<Client, 'get' | 'serves'> => ({
  ...memoryClient(),
  serves: () => Promise.resolve(true),
  get: () => Promise.reject(kubeError(code, `answer ${code}`)),
})

await t.test('a claim that is not there is told, one that may not be read is not', async (t) => {
  const o = { namespace: 'ns', claims: CLAIMS, signal }
  t.match(await findClaimRefusal(failing(404), o), { reason: 'ClaimNotFound' })
  t.equal(await findClaimRefusal(failing(403), o), undefined, 'Kubernetes tells it')
  await t.rejects(findClaimRefusal(failing(500), o), 'worth another try')
  t.equal(await findClaimRefusal(failing(500), { ...o, claims: undefined }), undefined)
})
