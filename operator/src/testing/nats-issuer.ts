import type { PlainClient } from '@tutti/kube/testing'
import { createNkey } from '../nats/nkey.ts'

const NAME = 'nats-issuer'

/** Flags of an operator whose NATS servers somebody else runs: it connects to none. */
export const ISSUER_FLAGS = ['--nats=nats://nats.example:4222', `--nats-issuer-secret=${NAME}`]

/** Makes the Secret from which such an operator issues credentials, unless the namespace has it. */
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
