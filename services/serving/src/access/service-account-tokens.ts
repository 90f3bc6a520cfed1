import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { Clock } from '@tutti/chassis'

/** The issuer of a cluster's ServiceAccount tokens, and the public keys that verify them. */
export interface TokenIssuer {
  /** URL of the issuer, as `iss` of its tokens has it. */
  readonly url: string
  /** JSON Web Keys; those that cannot verify the signatures of Kubernetes are ignored. */
  readonly keys: readonly Readonly<Record<string, unknown>>[]
}

/** The subject and the audiences of a valid token. */
export interface TokenClaims {
  readonly subject: string
  readonly audiences: readonly string[]
}

/** The signatures of Kubernetes (RFC 7518, 3.1). The key decides, so that no header can choose another one. */
const ALGORITHMS = [
  { alg: 'RS256', hash: 'sha256', type: 'rsa', curve: undefined },
  { alg: 'ES256', hash: 'sha256', type: 'ec', curve: 'prime256v1' },
  { alg: 'ES384', hash: 'sha384', type: 'ec', curve: 'secp384r1' },
  { alg: 'ES512', hash: 'sha512', type: 'ec', curve: 'secp521r1' },
] as const

/** Shorter RSA keys are not taken. */
const LEAST_RSA_BITS = 2048
/** Clocks of this machine and of the API server may differ by this, for tokens that are new. */
const SKEW_MS = 30_000
const LONGEST_TOKEN = 8192
/** Tokens that were valid and need no second look at their signature: they live for minutes to hours. */
const REMEMBERED = 1024

interface Remembered extends TokenClaims {
  readonly notBeforeMs: number
  readonly expiresMs: number
}

interface Key {
  readonly key: KeyObject
  readonly algorithm: (typeof ALGORITHMS)[number]
}

/**
 * Checks ServiceAccount tokens by the keys of their issuer, without a call to the API server. A token stays valid until it
 * expires, also if its ServiceAccount or its pod is deleted before.
 *
 * @see RFC 7515, RFC 7519
 */
export class ServiceAccountTokens {
  readonly #issuer: string
  readonly #clock: Pick<Clock, 'epochMs'>
  readonly #keys: ReadonlyMap<string, Key>
  /** Verified tokens, by their digest. */
  readonly #remembered = new Map<string, Remembered>()

  constructor({ url, keys }: TokenIssuer, clock: Pick<Clock, 'epochMs'>) {
    this.#issuer = url
    this.#clock = clock
    this.#keys = new Map(keys.flatMap(toKey))
  }

  /** Verifies a token and reads its claims. @returns undefined unless it is a valid token of the issuer now. */
  read(token: string): TokenClaims | undefined {
    if (token.length > LONGEST_TOKEN) return undefined
    const digest = createHash('sha256').update(token).digest('base64')
    const known = this.#remembered.get(digest)
    const claims = known ?? this.#verify(token)
    if (claims === undefined) return undefined
    const now = this.#clock.epochMs()
    if (now >= claims.expiresMs || now + SKEW_MS < claims.notBeforeMs) return undefined
    if (known === undefined) this.#remember(digest, claims)
    return claims
  }

  #remember(digest: string, claims: Remembered): void {
    const [oldest] = this.#remembered.keys()
    if (this.#remembered.size >= REMEMBERED && oldest !== undefined) this.#remembered.delete(oldest)
    this.#remembered.set(digest, claims)
  }

  #verify(token: string): Remembered | undefined {
    const [header = '', payload = '', signature = '', ...more] = token.split('.')
    const signed = fromBase64Url(signature)
    const said = toRecord(header)
    if (signed === undefined || said === undefined || more.length > 0) return undefined
    const key = this.#keys.get(String(said['kid']))
    // `crit` names members that one must understand, and we understand none.
    if (key === undefined || key.algorithm.alg !== said['alg']) return undefined
    if (said['crit'] !== undefined) return undefined
    const { hash } = key.algorithm
    const bytes = Buffer.from(`${header}.${payload}`)
    // For RSA the encoding has no meaning.
    const options = { key: key.key, dsaEncoding: 'ieee-p1363' } as const
    return verify(hash, bytes, options, signed) ? this.#toClaims(toRecord(payload)) : undefined
  }

  #toClaims(payload: Readonly<Record<string, unknown>> | undefined): Remembered | undefined {
    const { iss, sub, aud, exp, nbf = 0 } = payload ?? {}
    const audiences = [aud].flat().filter((one) => typeof one === 'string')
    if (iss !== this.#issuer || typeof sub !== 'string') return undefined
    if (typeof exp !== 'number' || typeof nbf !== 'number') return undefined
    return { subject: sub, audiences, expiresMs: exp * 1000, notBeforeMs: nbf * 1000 }
  }
}

function toKey(jwk: Readonly<Record<string, unknown>>): readonly (readonly [string, Key])[] {
  const { kid, use = 'sig' } = jwk
  if (typeof kid !== 'string' || use !== 'sig') return []
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const { namedCurve, modulusLength = LEAST_RSA_BITS } = key.asymmetricKeyDetails ?? {}
    const algorithm = ALGORITHMS.find(
      ({ type, curve }) => type === key.asymmetricKeyType && curve === namedCurve,
    )
    if (algorithm === undefined || modulusLength < LEAST_RSA_BITS) return []
    return [[kid, { key, algorithm }]]
  } catch {
    // An issuer may have keys of a kind that Node does not know: nothing is accepted by them.
    return []
  }
}

function toRecord(part: string): Readonly<Record<string, unknown>> | undefined {
  const bytes = fromBase64Url(part)
  if (bytes === undefined) return undefined
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    // No JSON, so no token.
    return undefined
  }
}

/** Decodes base64url, but only in its one canonical form: else a token could be written in several. */
function fromBase64Url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return text !== '' && bytes.toString('base64url') === text ? bytes : undefined
}
