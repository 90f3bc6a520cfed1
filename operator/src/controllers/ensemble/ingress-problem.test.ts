import t from 'tap'
import { findIngressProblem, type IngressView } from './ingress-problem.ts'

const key = { 'tls.crt': 'x', 'tls.key': 'y' }
const view = (o: Partial<IngressView> = {}): IngressView => ({
  expose: { className: 'traefik', hosts: ['a.example'] },
  ingresses: [{ isTaken: false }],
  secretNamed: () => ({ data: key }),
  classes: async () => ['nginx', 'traefik'],
  ...o,
})
const tls = {
  className: 'traefik',
  hosts: ['a.example'],
  tls: [{ hosts: ['a.example'], secretName: 'cert' }],
}
const absent = { className: 'haproxy', hosts: ['a.example'] }

await t.test('nothing is wrong with what the cluster has, or may have', async (t) => {
  for (const o of [
    {},
    { expose: tls },
    { expose: { hosts: ['a.example'] } },
    { expose: absent, classes: async () => undefined },
    { expose: absent, ingresses: [{ isTaken: true }] },
  ]) {
    t.equal(await findIngressProblem(view(o)), undefined)
  }
})

await t.test('a class that the cluster does not have is told with those that it has', async (t) => {
  t.same(await findIngressProblem(view({ expose: absent })), {
    reason: 'IngressClassNotFound',
    message:
      'expose.ingress.className: IngressClass "haproxy" does not exist; the cluster has nginx, traefik',
  })
  const none = view({ expose: absent, classes: async () => [] })
  t.match(await findIngressProblem(none), { message: /; the cluster has none$/ })
})

/** With this in the Secret of the certificate. */
function problemWith(data: Record<string, string> | undefined) {
  return findIngressProblem(view({ expose: tls, secretNamed: () => data && { data } }))
}

await t.test('a certificate that is not there is awaited', async (t) => {
  t.same(await problemWith(undefined), {
    reason: 'TlsSecretMissing',
    message:
      'expose.ingress.tls[0].secretName: Secret "cert" does not exist, want one with tls.crt and tls.key',
    isAwaited: true,
  })
  t.match(await problemWith({ 'tls.crt': 'x' }), { message: /Secret "cert" has no key tls\.key/ })
})
