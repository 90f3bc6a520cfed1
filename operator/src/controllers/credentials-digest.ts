import { createHash } from 'node:crypto'
import type { Secret, Stored } from '@tutti/kube'
import { digestOf } from '../runtime/canonical.ts'

/** The keys that a fetch reads. */
const KEYS = [
  'AWS_ACCESS_KEY_ID',
  'AWS_ENDPOINT_URL',
  'AWS_REGION',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'ca.crt',
  'password',
  'token',
  'username',
]

/** A Secret as caches keep it: digests in place of its values, which the operator does not need. */
export function withoutValues(secret: Stored<Secret>): Stored<Secret> {
  const { managedFields: _, annotations: __, ...metadata } = secret.metadata
  const data = Object.entries(secret.data ?? {}).map(([key, value]) => [
    key,
    createHash('sha256').update(value).digest('hex'),
  ])
  const { apiVersion, kind } = secret
  return { apiVersion, kind, metadata, data: Object.fromEntries(data) }
}

/**
 * A digest of the keys that a fetch uses, so that new credentials make new pods and nothing else does. It is on pods, which more
 * people read than Secrets. The random uid of the Secret is its key: without it nobody can try guesses.
 */
export function credentialsDigest(secret: Stored<Secret>): string {
  const { data = {}, metadata } = secret
  return digestOf({ uid: metadata.uid, values: KEYS.map((key) => [key, data[key] ?? null]) })
}
