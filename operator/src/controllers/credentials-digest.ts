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

/** Returns a Secret for caches: digests replace its values, which the operator does not need, and annotations are left out. */
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
 * Computes a digest of the Secret's keys that a fetch uses. It is on pods, so that only new credentials make new pods. More
 * people can read pods than Secrets, so the digest includes the random uid of the Secret: without the uid nobody can test
 * guesses.
 */
export function credentialsDigest(secret: Stored<Secret>): string {
  const { data = {}, metadata } = secret
  return digestOf({ uid: metadata.uid, values: KEYS.map((key) => [key, data[key] ?? null]) })
}
