import type { PlainClient } from '@tutti/kube/testing'
import { createNkey } from '../nats/nkey.ts'

const NAME = 'nats-issuer'

/** The flags of an operator with external NATS servers, to which it never connects. */
export const ISSUER_FLAGS = ['--nats=nats://nats.example:4222', `--nats-issuer-secret=${NAME}`]

/** Creates the issuer Secret that ISSUER_FLAGS names, unless the namespace has it. */
export async function ensureIssuer(plain: PlainClient, namespace: string): Promise<void> {
  const secrets = `/api/v1/namespaces/${namespace}/secrets`
  const there = await plain.list(secrets)
  if (there.some(({ metadata }) => metadata.name === NAME)) return
  await plain.create(secrets, {
    metadata: { name: NAME },
    stringData: {
      'account.pub': createNkey('account').publicKey,
      'signing.nk': createNkey('account').seed,
    },
  })
}
