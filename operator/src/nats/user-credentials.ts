import { z } from 'zod'
import { createNkey, type NatsClaims, nkeyOfSeed, readClaims, signClaims } from './nkey.ts'
import type { CredentialIssuer } from './tenancy-keys.ts'
import { tenantSubjects } from './tenant-subjects.ts'

/** The values from which the credential of a namespace is made. */
export interface CredentialOptions {
  readonly issuer: CredentialIssuer
  /** First token of all subjects. */
  readonly prefix: string
  readonly namespace: string
  readonly lifetimeMs: number
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}

/** The result of a check: a fresh credential stays until `renewAtMs` (milliseconds since the epoch), a stale one is made anew. */
export type CredentialCheck =
  | { readonly fresh: true; readonly renewAtMs: number }
  | { readonly fresh: false; readonly why: StaleReason }

/** Why a credential is made anew. */
export type StaleReason =
  | 'absent'
  | 'unreadable'
  | 'other issuer'
  | 'other permissions'
  | 'other lifetime'
  | 'half of its life is over'

/**
 * Makes the text of a credentials file for a new user of the account. The user may publish and subscribe only to the subjects of
 * the namespace. The credential expires after `lifetimeMs`.
 */
export function issueCredentials(o: CredentialOptions): string {
  const user = createNkey('user')
  const jwt = signClaims(o.issuer.signing, {
    sub: user.publicKey,
    name: `namespace ${o.namespace}`,
    iat: Math.floor(o.nowMs / 1000),
    exp: Math.floor((o.nowMs + o.lifetimeMs) / 1000),
    nats: grantOf(o),
  })
  return [
    '-----BEGIN NATS USER JWT-----',
    jwt,
    '------END NATS USER JWT------',
    '',
    '-----BEGIN USER NKEY SEED-----',
    user.seed,
    '------END USER NKEY SEED------',
    '',
  ].join('\n')
}

/**
 * Checks the text of a credentials file. It is stale if half its life is over or `issueCredentials` would now grant something
 * else.
 */
export function checkCredentials(text: string | undefined, o: CredentialOptions): CredentialCheck {
  if (text === undefined) return stale('absent')
  const claims = readCredentials(text)
  if (claims === undefined) return stale('unreadable')
  const { issuer } = o
  if (claims.iss !== issuer.signing.publicKey) return stale('other issuer')
  if (JSON.stringify(claims.nats) !== JSON.stringify(grantOf(o))) {
    return stale('other permissions')
  }
  const [fromMs, toMs] = [claims.iat * 1000, claims.exp * 1000]
  // A second is what rounding may take.
  if (Math.abs(toMs - fromMs - o.lifetimeMs) > 1000) return stale('other lifetime')
  // A clock that went back must not keep a credential for as long as it was ahead.
  if (fromMs > o.nowMs + o.lifetimeMs / 2) return stale('other lifetime')
  const renewAtMs = fromMs + o.lifetimeMs / 2
  return o.nowMs < renewAtMs ? { fresh: true, renewAtMs } : stale('half of its life is over')
}

function stale(why: StaleReason): CredentialCheck {
  return { fresh: false, why }
}

/** Builds the claims that say what a user may do. */
function grantOf(o: CredentialOptions): NatsClaims['nats'] {
  const allow = [tenantSubjects(o)]
  const { account, signing } = o.issuer
  return {
    pub: { allow },
    sub: { allow },
    subs: -1,
    data: -1,
    payload: -1,
    allowed_connection_types: ['STANDARD'],
    // Servers want the account named if it is not the account's own key that signs, and only then.
    ...(signing.publicKey !== account && { issuer_account: account }),
    type: 'user',
    version: 2,
  }
}

const UserClaims = z.object({
  iss: z.string(),
  sub: z.string(),
  iat: z.number(),
  exp: z.number(),
  nats: z.record(z.string(), z.unknown()),
})

const FILE =
  /^-----BEGIN NATS USER JWT-----\n(?<jwt>\S+)\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n(?<seed>\S+)\n------END USER NKEY SEED------\n$/

function readCredentials(text: string): z.infer<typeof UserClaims> | undefined {
  const { jwt, seed } = FILE.exec(text)?.groups ?? {}
  if (jwt === undefined || seed === undefined) return undefined
  const { data: claims } = UserClaims.safeParse(readClaims(jwt))
  return claims?.sub === nkeyOfSeed('user', seed)?.publicKey ? claims : undefined
}
