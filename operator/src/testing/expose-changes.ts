import { changes, type FieldChange } from './field-changes.ts'

const HOSTS = ['a.example', 'b.example']
const INGRESS = { expose: { ingress: { hosts: HOSTS } } }
const GATEWAY = { expose: { gateway: { parentRef: { name: 'edge' }, hosts: HOSTS } } }

/** By default it is one of the Ensemble's own namespace, whose name differs between the places that are compared. */
const ACCOUNT = { name: 'batch', namespace: 'jobs' }
const byAccount = (quota: object) => ({
  expose: {
    ingress: { hosts: HOSTS },
    auth: {
      audience: 'plates',
      identities: [{ name: 'batch', serviceAccount: ACCOUNT, quota }],
    },
  },
})
const byToken = (more: object) => ({
  expose: { ingress: { hosts: HOSTS }, auth: { secretRef: { name: 'secret-a' }, ...more } },
})
const RATE = { requestsPerSecond: 3 }

/** Changes of how an Ensemble is exposed. */
export const EXPOSED: readonly FieldChange[] = [
  ...changes(INGRESS, [
    ['expose.ingress.className', undefined, 'internal'],
    ['expose.ingress.hosts[]', 'a.example', 'c.example'],
    ['expose.ingress.annotations{note}', 'a', 'b'],
    ['expose.ingress.annotations', { note: 'a' }, {}],
    ['expose.ingress.tls', [{ hosts: ['a.example'] }], []],
    ['expose.auth.secretRef.name', undefined, 'secret-a'],
    ['expose.auth.secretRef.name', 'secret-a', 'secret-b'],
  ]),
  ...changes(byAccount(RATE), [
    ['expose.auth.identities[].name', 'batch', 'other'],
    ['expose.auth.identities[].serviceAccount.name', 'batch', 'other'],
    ['expose.auth.identities[].serviceAccount.namespace', 'jobs', 'other'],
    ['expose.auth.identities[].quota.requestsPerSecond', 3, 5],
    ['expose.auth.identities[].quota.burst', undefined, 7],
    ['expose.auth.identities[].quota.concurrentRequests', undefined, 5],
    ['expose.auth.audience', 'plates', 'faces'],
  ]),
  ...changes(byToken({ identities: [{ name: 'ci', tokenKey: 'token' }] }), [
    ['expose.auth.identities[].tokenKey', 'token', 'missing'],
  ]),
  ...changes(byToken({ quota: RATE }), [
    ['expose.auth.quota.requestsPerSecond', 3, 5],
    ['expose.auth.quota.burst', undefined, 7],
    ['expose.auth.quota.concurrentRequests', undefined, 5],
  ]),
  ...changes({ expose: { ingress: { hosts: HOSTS, tls: [{ hosts: ['a.example'] }] } } }, [
    ['expose.ingress.tls[].secretName', undefined, 'certificate'],
    ['expose.ingress.tls[].hosts[]', 'a.example', 'b.example'],
  ]),
  ...changes(GATEWAY, [
    ['expose.gateway.parentRef.name', 'edge', 'other'],
    ['expose.gateway.parentRef.namespace', undefined, 'infra'],
    ['expose.gateway.parentRef.sectionName', undefined, 'https'],
    ['expose.gateway.hosts[]', 'a.example', 'c.example'],
  ]),
]
