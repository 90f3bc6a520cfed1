import { randomBytes } from 'node:crypto'
import { type CertificatePair, createAuthority, isAuthority } from './certificates.ts'
import { createNkey, deriveAccountNkey, type Nkey } from './nkey.ts'
import {
  type CredentialIssuer,
  DamagedKeysError,
  KEY_NAMES,
  readKeyText,
  readPassword,
  readSeed,
  readSigningKeys,
  type SecretTexts,
  type SigningKeys,
} from './tenancy-keys.ts'

/**
 * The operator's keys, from which it makes accounts, credentials and the servers' certificates. Keys of namespaces are not stored
 * but derived: the key of an account from `accounts`, the key that signs its users from `signing`.
 */
export interface AccountKeys {
  readonly operator: Nkey
  readonly signing: SigningKeys
  /** Password with which the servers of a cluster connect to each other. */
  readonly routePassword: string
  /** Key of the system account, which the operator uses to manage the servers. */
  readonly system: Nkey
  readonly accounts: Nkey
  /** Certificate authority that signs the servers' certificates. */
  readonly authority: CertificatePair
}

/** The owner of an account: a namespace, with the id of its Secret. */
export interface AccountOwner {
  readonly namespace: string
  /**
   * Id of the Secret with the credential, as ACCOUNT_ID_PATTERN. A Secret that is deleted and made again has a new id and
   * account.
   */
  readonly id: string
}

/** The form of an account id, as `createAccountId` makes it. */
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

/** Creates new random keys, with an authority that is valid for 20 years. @param nowMs - milliseconds since the epoch. */
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

/** Writes the keys as texts of a Secret, which `parseAccountKeys` reads. */
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

/**
 * Reads the keys from the texts of their Secret.
 *
 * @throws DamagedKeysError that names the key of the Secret and what it must hold.
 */
export function parseAccountKeys(texts: SecretTexts): AccountKeys {
  const authority = {
    certificate: `${readKeyText(texts, NAMES.certificate)}\n`,
    key: `${readKeyText(texts, NAMES.key)}\n`,
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

/** Derives the account of a namespace and the key that signs its users now. */
export function toAccountIssuer(keys: AccountKeys, owner: AccountOwner): CredentialIssuer {
  const { publicKey: account } = deriveAccountNkey(keys.accounts, nameOf(owner))
  return { account, signing: deriveAccountNkey(keys.signing.current, nameOf(owner)) }
}

/** Lists the public keys that may sign users of the account: the current one, and the next and previous one during a rotation. */
export function signersOf({ signing }: AccountKeys, owner: AccountOwner): readonly string[] {
  const { current, next, previous } = signing
  return [current, next, previous].flatMap((root) =>
    root === undefined ? [] : [deriveAccountNkey(root, nameOf(owner)).publicKey],
  )
}

/** Builds the name of an account. Neither part has a line end, so no two owners have one name. */
function nameOf({ namespace, id }: AccountOwner): string {
  return `${namespace}\n${id}`
}
