import type { Clock, Logger } from '@tutti/chassis'
import type { CallOptions, ObjectKey, OwnerReference } from '@tutti/kube'
import { credentialIssued } from './log-events.ts'
import type { CredentialIssuer } from './tenancy-keys.ts'
import { type FoundSecret, type SecretClient, writeSecret } from './tenancy-secrets.ts'
import { type CredentialOptions, checkCredentials, issueCredentials } from './user-credentials.ts'

/** The keys of a namespace's Secret: the credentials file, and the authorities of the servers if pods need them. */
export const CREDENTIAL_FILES = { credentials: 'nats.creds', authorities: 'ca.crt' } as const

/** The issuer that signs a credential, and the authorities that pods need to trust the servers. */
export interface Issuance {
  readonly issuer: CredentialIssuer
  /** Authorities of the servers' certificates, PEM. */
  readonly authorities?: string
}

/** Options for a tenant's Secret: its owners, and the signal of the calls. */
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
  /** First token of all subjects; it must match PREFIX_PATTERN. */
  readonly prefix: string
  /** Lifetime of a credential, in milliseconds. It is renewed after half of this time. */
  readonly lifetimeMs: number
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Ensures the Secret with the credential of a namespace. A credential that is still good stays; otherwise a new one is issued.
 *
 * @returns the time at which the credential must be renewed, in milliseconds since the epoch.
 * @throws KubeError; TerminalError if the Secret lacks the operator's label.
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
