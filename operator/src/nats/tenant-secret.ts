import type { Clock, Logger } from '@tutti/chassis'
import type { CallOptions, ObjectKey, OwnerReference } from '@tutti/kube'
import { credentialIssued } from './log-events.ts'
import type { CredentialIssuer } from './tenancy-keys.ts'
import { type FoundSecret, type SecretClient, writeSecret } from './tenancy-secrets.ts'
import { type CredentialOptions, checkCredentials, issueCredentials } from './user-credentials.ts'

/** Keys of the Secret of a namespace: the credentials file, and the authorities of the servers if pods need them. */
export const CREDENTIAL_FILES = { credentials: 'nats.creds', authorities: 'ca.crt' } as const

/** The issuer with which a credential is made, and the authorities that pods need with it. */
export interface Issuance {
  readonly issuer: CredentialIssuer
  /** PEM. */
  readonly authorities?: string
}

/** How a tenant's Secret is ensured. */
export interface EnsureTenantOptions extends CallOptions {
  readonly owners?: readonly OwnerReference[]
}

export interface TenantSecret extends Issuance {
  readonly key: ObjectKey & { readonly namespace: string }
  readonly found: FoundSecret | undefined
  readonly labels?: Readonly<Record<string, string>>
}

export interface TenantSecretOptions {
  readonly client: SecretClient
  /** First token of all subjects, as PREFIX_PATTERN. */
  readonly prefix: string
  /** Lifetime of a credential; it is renewed when half of it is over. */
  readonly lifetimeMs: number
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Writes the Secret with the credential of a namespace, if it is not as it should be.
 *
 * @returns when it has to be looked at again, in milliseconds since the epoch.
 */
export async function ensureTenantSecret(
  { client, prefix, lifetimeMs, clock, log }: TenantSecretOptions,
  { key, found, issuer, authorities, labels }: TenantSecret,
  { owners, ...o }: EnsureTenantOptions,
): Promise<{ readonly renewAtMs: number }> {
  const { namespace } = key
  const nowMs = clock.epochMs()
  const wanted: CredentialOptions = { issuer, prefix, namespace, lifetimeMs, nowMs }
  const present = found?.texts[CREDENTIAL_FILES.credentials]
  const checked = checkCredentials(present, wanted)
  const isKept = checked.fresh && present !== undefined
  const texts = {
    [CREDENTIAL_FILES.credentials]: isKept ? present : issueCredentials(wanted),
    ...(authorities !== undefined && { [CREDENTIAL_FILES.authorities]: authorities }),
  }
  const desired = { key, component: 'credentials', texts, ...(owners && { owners }) } as const
  await writeSecret(client, found, { ...desired, ...(labels && { labels }) }, o)
  if (checked.fresh) return { renewAtMs: checked.renewAtMs }
  credentialIssued(log, namespace, checked.why)
  return { renewAtMs: nowMs + lifetimeMs / 2 }
}
