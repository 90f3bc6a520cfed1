import { randomBytes } from 'node:crypto'
import { type CertificatePair, createAuthority, isAuthority } from './certificates.ts'
import { createNkey, deriveAccountNkey, type Nkey } from './nkey.ts'
import {
  type CredentialIssuer,
  DamagedKeysError,
  KEY_NAMES,
  readPassword,
  readSeed,
  readSigningKeys,
  readText,
  type SecretTexts,
  type SigningKeys,
} from './tenancy-keys.ts'

/**
 * Everything from which accounts, credentials and the servers' certificates are made. The keys of the namespaces are not kept: they
 * are derived, an account from `accounts`, what signs its users from `signing`.
 */
export interface AccountKeys {
  readonly operator: Nkey
  readonly signing: SigningKeys
  /** With which the servers of a cluster let one another in. */
  readonly routePassword: string
  /** Key of the account in which the operator speaks with the servers. */
  readonly system: Nkey
  readonly accounts: Nkey
  /** Signs the servers' certificates. */
  readonly authority: CertificatePair
}

/** Whose account it is. */
export interface AccountOwner {
  readonly namespace: string
  /** Id of the Secret with the credential, as ACCOUNT_ID_PATTERN: another Secret of that name has another account. */
  readonly id: string
}

/** Ids that `createAccountId` makes. */
export const ACCOUNT_ID_PATTERN = /^[0-9a-f]{32}$/

export function createAccountId(): string {
  return randomBytes(16).toString('hex')
}

/** Keys of the Secret, beside KEY_NAMES. */
const NAMES = {
  system: 'system.nk',
  accounts: 'accounts.nk',
  certificate: 'ca.crt',
  key: 'ca.key',
} as const

const AUTHORITY_LIFETIME_MS = 20 * 365 * 86_400_000

/** @param nowMs - since the epoch. */
export function createAccountKeys(nowMs: number): AccountKeys {
  return {
    operator: createNkey('operator'),
    system: createNkey('account'),
    accounts: createNkey('account'),
    signing: { current: createNkey('account') },
    routePassword: randomBytes(32).toString('base64url'),
    authority: createAuthority({ nowMs, lifetimeMs: AUTHORITY_LIFETIME_MS }),
  }
}

/** @returns the texts of the Secret that `parseAccountKeys` reads. */
export function toAccountTexts(keys: AccountKeys): SecretTexts {
  const { current, next, previous, usedAtMs } = keys.signing
  return {
    [KEY_NAMES.operator]: keys.operator.seed,
    [KEY_NAMES.signing]: current.seed,
    ...(next !== undefined && { [KEY_NAMES.nextSigning]: next.seed }),
    ...(previous !== undefined && { [KEY_NAMES.previousSigning]: previous.seed }),
    ...(usedAtMs !== undefined && { [KEY_NAMES.signingSince]: new Date(usedAtMs).toISOString() }),
    [KEY_NAMES.routePassword]: keys.routePassword,
    [NAMES.system]: keys.system.seed,
    [NAMES.accounts]: keys.accounts.seed,
    [NAMES.certificate]: keys.authority.certificate,
    [NAMES.key]: keys.authority.key,
  }
}

/** @throws DamagedKeysError that names the key, and what was wanted there. */
export function parseAccountKeys(texts: SecretTexts): AccountKeys {
  const authority = {
    certificate: `${readText(texts, NAMES.certificate)}\n`,
    key: `${readText(texts, NAMES.key)}\n`,
  }
  if (!isAuthority(authority)) {
    throw new DamagedKeysError(
      `keys "${NAMES.certificate}" and "${NAMES.key}": they hold no authority and its key, want both as PEM`,
    )
  }
  return {
    operator: readSeed(texts, KEY_NAMES.operator, 'operator'),
    signing: readSigningKeys(texts),
    routePassword: readPassword(texts),
    system: readSeed(texts, NAMES.system, 'account'),
    accounts: readSeed(texts, NAMES.accounts, 'account'),
    authority,
  }
}

/** The account of a namespace, and what signs its users now. */
export function toAccountIssuer(keys: AccountKeys, owner: AccountOwner): CredentialIssuer {
  const { publicKey: account } = deriveAccountNkey(keys.accounts, nameOf(owner))
  return { account, signing: deriveAccountNkey(keys.signing.current, nameOf(owner)) }
}

/** Public keys of all that may sign users of the account: that of the last rotation too, until it is removed. */
export function signersOf({ signing }: AccountKeys, owner: AccountOwner): readonly string[] {
  const { current, next, previous } = signing
  return [current, next, previous].flatMap((root) =>
    root === undefined ? [] : [deriveAccountNkey(root, nameOf(owner)).publicKey],
  )
}

/** Neither has a line end, so no two owners have one name. */
function nameOf({ namespace, id }: AccountOwner): string {
  return `${namespace}\n${id}`
}
