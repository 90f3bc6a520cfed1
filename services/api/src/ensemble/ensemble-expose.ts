import { z } from 'zod'
import { cel, listAtomic, listMap, listSet, oneOf, text } from '../schema/cel.ts'
import { annotations, dnsLabel, objectName, SecretRef, whole } from '../schema/fields.ts'

/*
 * How an Ensemble is reached from outside of the cluster.
 */

const host = () =>
  text({
    min: 1,
    max: 253,
    pattern: /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
    want: 'a host name, e.g. models.example.com or *.example.com',
  }).describe('A host name; the first label may be *.')

const hosts = (description: string) => listSet(host(), { min: 1, max: 16 }).describe(description)

const ExposeIngress = cel(
  z.strictObject({
    className: objectName('The ingress class. Default: that of the cluster.').optional(),
    hosts: hosts('Host names that lead to the ensemble.'),
    tls: listAtomic(
      z.strictObject({
        secretName: objectName('Secret of the type kubernetes.io/tls.').optional(),
        hosts: hosts('Host names that the certificate is for.'),
      }),
      { max: 16 },
    )
      .optional()
      .describe('Certificates, as in an Ingress.'),
    annotations: annotations('Annotations of the Ingress.').optional(),
  }),
  {
    rule: '!has(self.tls) || self.tls.all(entry, entry.hosts.all(host, host in self.hosts))',
    message: 'want hosts that are among `hosts` of the ingress',
    field: 'tls',
  },
)

const ExposeGateway = z.strictObject({
  parentRef: z
    .strictObject({
      name: objectName('Name of the Gateway.'),
      namespace: dnsLabel('Its namespace. Default: that of the Ensemble.').optional(),
      sectionName: objectName('Name of one of its listeners. Default: all.').optional(),
    })
    .describe('The Gateway to attach to.'),
  hosts: hosts('Host names that lead to the ensemble.'),
})

const atMost = (description: string) => whole(1, 1_000_000, description)

const quota = (description: string) =>
  cel(
    z.strictObject({
      requestsPerSecond: atMost('Requests a second, each request of a stream too.').optional(),
      burst: atMost('Requests that may come at once. Default: requestsPerSecond.').optional(),
      concurrentRequests: atMost('Inference requests at the same time.').optional(),
    }),
    {
      rule: 'has(self.requestsPerSecond) || (has(self.concurrentRequests) && !has(self.burst))',
      message:
        'want requestsPerSecond or concurrentRequests, and burst with requestsPerSecond only',
    },
  ).describe(description)

const ExposeIdentity = oneOf(
  z.strictObject({
    name: dnsLabel('In logs and metrics.'),
    tokenKey: text({
      min: 1,
      max: 253,
      pattern: /^[-._a-zA-Z0-9]+$/,
      want: 'a key of a Secret: letters, digits and -_.',
    })
      .describe('Key of the Secret; its value is the bearer token.')
      .optional(),
    serviceAccount: z
      .strictObject({
        name: objectName('Its name.'),
        namespace: dnsLabel('Its namespace. Default: that of the Ensemble.').optional(),
      })
      .optional()
      .describe('Who brings a token of this ServiceAccount for `audience` as a bearer token.'),
    quota: quota('What it may ask of each router. Default: `quota` of `auth`.').optional(),
  }),
  'tokenKey',
  'serviceAccount',
)
export type ExposeIdentity = z.infer<typeof ExposeIdentity>

const ExposeAuth = cel(
  z.strictObject({
    secretRef: SecretRef.optional().describe(
      'Secret with the keys of `identities`; without those, with the key token.',
    ),
    identities: listMap(ExposeIdentity, 'name', { min: 1, max: 64 })
      .optional()
      .describe('Who is let in. Default: who brings the token of the key token.'),
    audience: text({ min: 1, max: 253, pattern: /^\S+$/, want: 'no spaces' })
      .optional()
      .describe('Whom tokens of ServiceAccounts must be for.'),
    quota: quota('What each identity may ask of each router. Default: no bound.').optional(),
  }),
  {
    rule: 'has(self.secretRef) == (!has(self.identities) || self.identities.exists(one, has(one.tokenKey)))',
    message:
      'want secretRef where a token is in it: without identities, or with a tokenKey; else not',
    field: 'secretRef',
  },
  {
    rule: 'has(self.audience) == (has(self.identities) && self.identities.exists(one, has(one.serviceAccount)))',
    message: 'want audience with a serviceAccount, and only then',
    field: 'audience',
  },
)
export type ExposeAuth = z.infer<typeof ExposeAuth>

export const EnsembleExpose = oneOf(
  z.strictObject({
    ingress: ExposeIngress.optional().describe('By an Ingress.'),
    gateway: ExposeGateway.optional().describe('By an HTTPRoute of Gateway API.'),
    auth: ExposeAuth.optional().describe(
      'Who may call it from outside, by a bearer token. Default: everybody who reaches it.',
    ),
  }),
  'ingress',
  'gateway',
).describe('Access from outside the cluster. Default: none.')
export type EnsembleExpose = z.infer<typeof EnsembleExpose>
