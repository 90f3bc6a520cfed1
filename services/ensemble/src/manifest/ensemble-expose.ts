import { z } from 'zod'
import { cel, listAtomic, listSet, oneOf, text } from './cel.ts'
import { annotations, dnsLabel, objectName, SecretRef } from './fields.ts'

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
    holds: (ingress) =>
      (ingress.tls ?? []).every((entry) => entry.hosts.every((h) => ingress.hosts.includes(h))),
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

export const EnsembleExpose = oneOf(
  z.strictObject({
    ingress: ExposeIngress.optional().describe('By an Ingress.'),
    gateway: ExposeGateway.optional().describe('By an HTTPRoute of Gateway API.'),
    auth: z
      .strictObject({ secretRef: SecretRef.describe('Secret with the key token.') })
      .optional()
      .describe('Requests from outside must bring this token as a bearer token.'),
  }),
  'ingress',
  'gateway',
).describe('Access from outside the cluster. Default: none.')
export type EnsembleExpose = z.infer<typeof EnsembleExpose>
