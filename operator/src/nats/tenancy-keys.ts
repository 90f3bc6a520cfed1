import { isPublicNkey, LETTER, type Nkey, type NkeyRole, nkeyOfSeed } from './nkey.ts'

/** The signing keys of accounts. Servers let in users that any of these keys has signed. New users are signed by `current`. */
export interface SigningKeys {
  readonly current: Nkey
  /** Next key of a rotation. Servers know it, but nothing is signed with it yet. */
  readonly next?: Nkey
  /** Previous key of a rotation. Nothing is signed with it now, but servers still accept its credentials. */
  readonly previous?: Nkey
  /** Time at which `current` replaced `previous`, in milliseconds since the epoch. */
  readonly usedAtMs?: number
}

/** An account, and the key that signs its users. */
export interface CredentialIssuer {
  /** Public key of the account, `A...`. */
  readonly account: string
  readonly signing: Nkey
}

/** The keys of the Secrets. The Secret for external servers needs only `account` and `signing`. */
export const KEY_NAMES = {
  operator: 'operator.nk',
  account: 'account.pub',
  signing: 'signing.nk',
  nextSigning: 'signing-next.nk',
  previousSigning: 'signing-previous.nk',
  signingSince: 'signing-since',
  routePassword: 'route-password',
} as const

/** The content of a Secret: decoded texts by key. */
export type SecretTexts = Readonly<Record<string, string>>

/** The error for a Secret with a missing or wrong value. The message names the key, and repeats none of the content. */
export class DamagedKeysError extends Error {
  override readonly name = 'DamagedKeysError'
}

/**
 * Reads the Secret for external servers: the account, and a key that may sign its users. This may be the key of the account
 * itself.
 *
 * @throws DamagedKeysError that names the key of the Secret and what it must hold.
 */
export function parseCredentialIssuer(texts: SecretTexts): CredentialIssuer {
  return {
    account: readPublicKey(texts, KEY_NAMES.account),
    signing: readSeed(texts, KEY_NAMES.signing, 'account'),
  }
}

/** Reads the signing keys from a Secret. @throws DamagedKeysError that names the key of the Secret and what it must hold. */
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
  const usedAtMs = Date.parse(readKeyText(texts, KEY_NAMES.signingSince))
  if (Number.isFinite(usedAtMs)) return { usedAtMs }
  throw new DamagedKeysError(
    `key "${KEY_NAMES.signingSince}": it holds no time, want 2030-01-31T12:00:00.000Z`,
  )
}

/** Reads a key pair from the seed under `name`. @throws DamagedKeysError if there is no valid seed of this role. */
export function readSeed(texts: SecretTexts, name: string, role: NkeyRole): Nkey {
  const text = readKeyText(texts, name)
  const key = nkeyOfSeed(role, text)
  if (key !== undefined) return key
  throw new DamagedKeysError(
    `key "${name}": it holds no seed of an ${role} nkey, want S${LETTER[role]}...`,
  )
}

function readPublicKey(texts: SecretTexts, name: string): string {
  const text = readKeyText(texts, name)
  if (isPublicNkey('account', text)) return text
  throw new DamagedKeysError(`key "${name}": it holds no public nkey of an account, want A...`)
}

/** Reads the password of the servers' cluster. @throws DamagedKeysError if it is missing or has another form. */
export function readPassword(texts: SecretTexts): string {
  const text = readKeyText(texts, KEY_NAMES.routePassword)
  if (/^[\w-]{16,}$/.test(text)) return text
  throw new DamagedKeysError(
    `key "${KEY_NAMES.routePassword}": got ${text.length} characters, want 16 or more letters, digits, - and _`,
  )
}

/** Reads a text without the white space around it, which editors leave. @throws DamagedKeysError if the text is missing. */
export function readKeyText(texts: SecretTexts, name: string): string {
  const text = texts[name]?.trim()
  if (text === undefined) throw new DamagedKeysError(`key "${name}" is missing`)
  return text
}
