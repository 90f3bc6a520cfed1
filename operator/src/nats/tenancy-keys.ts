import { randomBytes } from 'node:crypto'
import { createNkey, isPublicNkey, LETTER, type Nkey, type NkeyRole, nkeyOfSeed } from './nkey.ts'

/** The signing keys of the account. The server lets in users that any of them has signed; new users are signed by `current`. */
export interface SigningKeys {
  readonly current: Nkey
  /** Known to the servers and not in use yet: the next one of a rotation. */
  readonly next?: Nkey
  /** Known to the servers and in use no more: the last one, while its users' credentials may still be about. */
  readonly previous?: Nkey
  /** When `current` came into use, and `previous` ended: milliseconds since the epoch. */
  readonly usedAtMs?: number
}

/** What the operator's own keys have in common, whatever the accounts. */
export interface ServerKeys {
  readonly operator: Nkey
  readonly signing: SigningKeys
  /** With which the servers of a cluster let one another in. */
  readonly routePassword: string
}

/** What signs the users of an account. */
export interface CredentialIssuer {
  /** Public key of the account, `A...`. */
  readonly account: string
  readonly signing: Nkey
}

/**
 * Everything from which the servers' configuration and all credentials are made. The seeds of the two accounts are not kept:
 * operators vouch for accounts, and signing keys for users.
 */
export interface TenancyKeys extends ServerKeys {
  /** Public key of the account of all tenants, `A...`. */
  readonly account: string
  /** Public key of the account in which servers speak about themselves; no one has a user in it. */
  readonly systemAccount: string
}

/** Keys of the Secret that holds TenancyKeys; of a Secret for external servers `account` and `signing` alone are wanted. */
export const KEY_NAMES = {
  operator: 'operator.nk',
  account: 'account.pub',
  systemAccount: 'system-account.pub',
  signing: 'signing.nk',
  nextSigning: 'signing-next.nk',
  previousSigning: 'signing-previous.nk',
  signingSince: 'signing-since',
  routePassword: 'route-password',
} as const

/** What is in a Secret, by key, as text. */
export type SecretTexts = Readonly<Record<string, string>>

/** A Secret does not hold what it should; the message says which key, and repeats none of the content. */
export class DamagedKeysError extends Error {
  override readonly name = 'DamagedKeysError'
}

export function createTenancyKeys(): TenancyKeys {
  return {
    operator: createNkey('operator'),
    account: createNkey('account').publicKey,
    systemAccount: createNkey('account').publicKey,
    signing: { current: createNkey('account') },
    routePassword: randomBytes(32).toString('base64url'),
  }
}

/** @returns the texts of the Secret that `parseTenancyKeys` reads. */
export function toSecretTexts(keys: TenancyKeys): SecretTexts {
  return {
    ...toServerTexts(keys),
    [KEY_NAMES.account]: keys.account,
    [KEY_NAMES.systemAccount]: keys.systemAccount,
  }
}

/** @returns the texts that `parseServerKeys` reads. */
export function toServerTexts({ operator, signing, routePassword }: ServerKeys): SecretTexts {
  const { current, next, previous, usedAtMs } = signing
  return {
    [KEY_NAMES.operator]: operator.seed,
    [KEY_NAMES.signing]: current.seed,
    ...(next !== undefined && { [KEY_NAMES.nextSigning]: next.seed }),
    ...(previous !== undefined && { [KEY_NAMES.previousSigning]: previous.seed }),
    ...(usedAtMs !== undefined && { [KEY_NAMES.signingSince]: new Date(usedAtMs).toISOString() }),
    [KEY_NAMES.routePassword]: routePassword,
  }
}

/** @throws DamagedKeysError that names the key, and what was wanted there. */
export function parseTenancyKeys(texts: SecretTexts): TenancyKeys {
  return {
    ...parseServerKeys(texts),
    account: readPublicKey(texts, KEY_NAMES.account),
    systemAccount: readPublicKey(texts, KEY_NAMES.systemAccount),
  }
}

/** @throws DamagedKeysError as parseTenancyKeys. */
export function parseServerKeys(texts: SecretTexts): ServerKeys {
  return {
    operator: readSeed(texts, KEY_NAMES.operator, 'operator'),
    signing: readSigningKeys(texts),
    routePassword: readPassword(texts),
  }
}

/**
 * Reads what an administrator of external servers gives: the account, and a key that may sign its users (the account's own, too).
 *
 * @throws DamagedKeysError as parseTenancyKeys.
 */
export function parseCredentialIssuer(texts: SecretTexts): CredentialIssuer {
  return {
    account: readPublicKey(texts, KEY_NAMES.account),
    signing: readSeed(texts, KEY_NAMES.signing, 'account'),
  }
}

export function toCredentialIssuer(keys: TenancyKeys): CredentialIssuer {
  return { account: keys.account, signing: keys.signing.current }
}

function readSigningKeys(texts: SecretTexts): SigningKeys {
  const optional = (name: string): Nkey | undefined =>
    texts[name] === undefined ? undefined : readSeed(texts, name, 'account')
  const next = optional(KEY_NAMES.nextSigning)
  const previous = optional(KEY_NAMES.previousSigning)
  return {
    current: readSeed(texts, KEY_NAMES.signing, 'account'),
    ...(next !== undefined && { next }),
    ...(previous !== undefined && { previous }),
    ...readSince(texts),
  }
}

function readSince(texts: SecretTexts): Pick<SigningKeys, 'usedAtMs'> {
  if (texts[KEY_NAMES.signingSince] === undefined) return {}
  const usedAtMs = Date.parse(readText(texts, KEY_NAMES.signingSince))
  if (Number.isFinite(usedAtMs)) return { usedAtMs }
  throw new DamagedKeysError(
    `key "${KEY_NAMES.signingSince}": it holds no time, want 2030-01-31T12:00:00.000Z`,
  )
}

/** @throws DamagedKeysError if `texts` has no seed of that role under `name`. */
export function readSeed(texts: SecretTexts, name: string, role: NkeyRole): Nkey {
  const text = readText(texts, name)
  const key = nkeyOfSeed(role, text)
  if (key !== undefined) return key
  throw new DamagedKeysError(
    `key "${name}": it holds no seed of an ${role} nkey, want S${LETTER[role]}...`,
  )
}

function readPublicKey(texts: SecretTexts, name: string): string {
  const text = readText(texts, name)
  if (isPublicNkey('account', text)) return text
  throw new DamagedKeysError(`key "${name}": it holds no public nkey of an account, want A...`)
}

function readPassword(texts: SecretTexts): string {
  const text = readText(texts, KEY_NAMES.routePassword)
  if (/^[\w-]{16,}$/.test(text)) return text
  throw new DamagedKeysError(
    `key "${KEY_NAMES.routePassword}": got ${text.length} characters, want 16 or more letters, digits, - and _`,
  )
}

/** White space around a key is what editors leave. @throws DamagedKeysError if there is none. */
export function readText(texts: SecretTexts, name: string): string {
  const text = texts[name]?.trim()
  if (text === undefined) throw new DamagedKeysError(`key "${name}" is missing`)
  return text
}
