import { createHash } from 'node:crypto'
import {
  createAccount,
  createOperator,
  createUser,
  fromPublic,
  fromSeed,
  type KeyPair,
} from 'nkeys.js'

/** Whose key it is: seeds begin with SO, SA or SU, public keys with O, A or U. */
export type NkeyRole = 'operator' | 'account' | 'user'

/** A key pair as NATS writes it. The seed is secret. */
export interface Nkey {
  readonly publicKey: string
  readonly seed: string
}

const CREATE: Readonly<Record<NkeyRole, () => KeyPair>> = {
  operator: createOperator,
  account: createAccount,
  user: createUser,
}

/** With which public keys begin; seeds have an S before it. */
export const LETTER: Readonly<Record<NkeyRole, string>> = { operator: 'O', account: 'A', user: 'U' }

/** A new key, from the random numbers of the system. */
export function createNkey(role: NkeyRole): Nkey {
  return textsOf(CREATE[role]())
}

/** @returns the key; undefined if `seed` is no seed of a key of this role. */
export function nkeyOfSeed(role: NkeyRole, seed: string): Nkey | undefined {
  if (!seed.startsWith(`S${LETTER[role]}`)) return undefined
  try {
    const key = textsOf(fromSeed(Buffer.from(seed)))
    // Some bits of the last character are not part of the key.
    return key.seed === seed ? key : undefined
  } catch {
    // The library's words say nothing about where the seed came from; the caller knows.
    return undefined
  }
}

/** True if `text` is the public key of a key of this role. */
export function isPublicNkey(role: NkeyRole, text: string): boolean {
  return text.startsWith(LETTER[role]) && publicPair(text) !== undefined
}

/** The claims of a JWT of NATS; `nats` is what the role has. */
export interface NatsClaims {
  readonly iss: string
  readonly sub: string
  readonly name: string
  /** Seconds since the epoch. */
  readonly iat: number
  /** Seconds since the epoch; absent means never. */
  readonly exp?: number
  readonly nats: Readonly<Record<string, unknown>> & {
    readonly type: NkeyRole
    readonly version: 2
  }
}

const HEADER = Buffer.from(JSON.stringify({ typ: 'JWT', alg: 'ed25519-nkey' })).toString(
  'base64url',
)

/**
 * Signs claims as a JWT of NATS, version 2. The same claims and the same key give the same text.
 *
 * @param issuer - its public key becomes `iss`.
 * @see https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/jwt
 */
export function signClaims(issuer: Nkey, claims: Omit<NatsClaims, 'iss'>): string {
  const issued: NatsClaims = { ...claims, iss: issuer.publicKey }
  const jti = createHash('sha256').update(JSON.stringify(issued)).digest('hex')
  const body = Buffer.from(JSON.stringify({ ...issued, jti })).toString('base64url')
  const text = `${HEADER}.${body}`
  const signature = fromSeed(Buffer.from(issuer.seed)).sign(Buffer.from(text))
  return `${text}.${Buffer.from(signature).toString('base64url')}`
}

/** @returns the claims, unparsed; undefined if `jwt` is not one that the issuer named in it has signed. */
export function readClaims(jwt: string): unknown {
  const [header, body, signature, ...rest] = jwt.split('.')
  if (header !== HEADER || body === undefined || signature === undefined || rest.length > 0) {
    return undefined
  }
  try {
    const claims: unknown = JSON.parse(Buffer.from(body, 'base64url').toString())
    const pair = publicPair(issuerOf(claims))
    const signed = Buffer.from(`${header}.${body}`)
    const bytes = Buffer.from(signature, 'base64url')
    if (bytes.toString('base64url') !== signature) return undefined
    return pair?.verify(signed, bytes) === true ? claims : undefined
  } catch {
    // It is not JSON, or the signature has another length: in either case nothing that we have signed.
    return undefined
  }
}

function issuerOf(claims: unknown): string {
  if (typeof claims !== 'object' || claims === null || !('iss' in claims)) return ''
  return typeof claims.iss === 'string' ? claims.iss : ''
}

function publicPair(text: string): KeyPair | undefined {
  try {
    return fromPublic(text)
  } catch {
    // As for seeds.
    return undefined
  }
}

function textsOf(pair: KeyPair): Nkey {
  return { publicKey: pair.getPublicKey(), seed: Buffer.from(pair.getSeed()).toString() }
}
