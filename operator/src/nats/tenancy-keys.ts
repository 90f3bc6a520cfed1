import { isPublicNkey, LETTER, type Nkey, type NkeyRole, nkeyOfSeed } from './nkey.ts'

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

/** An account, and the key that signs its users. */
export interface CredentialIssuer {
  /** Public key of the account, `A...`. */
  readonly account: string
  readonly signing: Nkey
}

/** Keys of the Secrets: of one for external servers `account` and `signing` are wanted. */
export const KEY_NAMES = {
  operator: 'operator.nk',
  account: 'account.pub',
  signing: 'signing.nk',
  nextSigning: 'signing-next.nk',
  previousSigning: 'signing-previous.nk',
  signingSince: 'signing-since',
  routePassword: 'route-password',
} as const

/** The content of a Secret, by key, as text. */
export type SecretTexts = Readonly<Record<string, string>>

/** A Secret does not hold what it should; the message says which key, and repeats none of the content. */
export class DamagedKeysError extends Error {
  override readonly name = 'DamagedKeysError'
}

/**
 * Reads what an administrator of external servers gives: the account, and a key that may sign its users (the account's own, too).
 *
 * @throws DamagedKeysError that names the key, and what was wanted there.
 */
export function parseCredentialIssuer(texts: SecretTexts): CredentialIssuer {
  return {
    account: readPublicKey(texts, KEY_NAMES.account),
    signing: readSeed(texts, KEY_NAMES.signing, 'account'),
  }
}

/** @throws DamagedKeysError that names the key, and what was wanted there. */
export function readSigningKeys(texts: SecretTexts): SigningKeys {
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

/** @throws DamagedKeysError if there is no password of the servers' cluster. */
export function readPassword(texts: SecretTexts): string {
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
