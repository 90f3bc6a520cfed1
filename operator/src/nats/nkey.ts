import { createHash, hkdfSync } from 'node:crypto'
import {
  createAccount,
  createOperator,
  createUser,
  fromPublic,
  fromSeed,
  type KeyPair,
} from 'nkeys.js'
import { LruMap } from '../runtime/lru-map.ts'

/** The role of a key. In the order below, seeds begin with SO, SA or SU, and public keys with O, A or U. */
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

/** The first letter of public keys by role. Seeds begin with S and this letter. */
export const LETTER: Readonly<Record<NkeyRole, string>> = { operator: 'O', account: 'A', user: 'U' }

/** Creates a random key pair. */
export function createNkey(role: NkeyRole): Nkey {
  return textsOf(CREATE[role]())
}

/**
 * Derives the key of an account from a root key and a name. The same root and name always give the same key. A derived key
 * reveals neither the root key nor the keys of other names.
 */
export function deriveAccountNkey(root: Nkey, name: string): Nkey {
  const raw = hkdfSync('sha256', root.seed, '', `tutti nats account\n${name}`, 32)
  return textsOf(fromSeed(Buffer.from(accountSeedOf(new Uint8Array(raw)))))
}

/** The operator's own keys are read anew for every namespace, and to make a public key of a seed takes 2 ms. */
const read = new LruMap<Nkey>(32)

/** Computes the key pair of a seed. @returns undefined if `seed` is no valid seed of this role. */
export function nkeyOfSeed(role: NkeyRole, seed: string): Nkey | undefined {
  if (!seed.startsWith(`S${LETTER[role]}`)) return undefined
  const known = read.get(seed) ?? readSeed(seed)
  if (known !== undefined) read.set(seed, known)
  return known
}

/** 36 bytes in base32. The two bits of the last character that are over are 0: the library takes any, and a further character. */
const SEED = /^[A-Z2-7]{57}[AEIMQUY4]$/

function readSeed(seed: string): Nkey | undefined {
  if (!SEED.test(seed)) return undefined
  try {
    return textsOf(fromSeed(Buffer.from(seed)))
  } catch {
    // The library's words say nothing about where the seed came from; the caller knows.
    return undefined
  }
}

/** Characters of a public key: 35 bytes in base32. */
const PUBLIC_LENGTH = 56

/** True if `text` is a valid public key of this role. */
export function isPublicNkey(role: NkeyRole, text: string): boolean {
  if (text.length !== PUBLIC_LENGTH || !text.startsWith(LETTER[role])) return false
  return publicPair(text) !== undefined
}

/** The claims of a NATS JWT. The content of `nats` depends on the role. */
export interface NatsClaims {
  readonly iss: string
  readonly sub: string
  readonly name: string
  /** Seconds since the epoch. */
  readonly iat: number
  /** Seconds since the epoch; absent means never. */
  readonly exp?: number
  readonly nats: Readonly<Record<string, unknown>> & {
    readonly type: NkeyRole | 'generic'
    readonly version: 2
  }
}

const HEADER = Buffer.from(JSON.stringify({ typ: 'JWT', alg: 'ed25519-nkey' })).toString(
  'base64url',
)

/**
 * Signs claims as a JWT of NATS, version 2. The same claims and the same key give the same text.
 *
 * @param issuer - the key that signs; its public key becomes `iss`.
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

/**
 * Reads the claims of a JWT and checks its signature with its own `iss`.
 *
 * @returns undefined if it is malformed or wrongly signed.
 */
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

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/**
 * Makes the seed of an account, because the library makes seeds of random numbers alone. Its first two bytes name the role, the
 * last two are a check sum.
 */
function accountSeedOf(raw: Uint8Array): string {
  const bytes = Buffer.from([0x90, 0x00, ...raw, 0, 0])
  bytes.writeUInt16LE(crc16(bytes.subarray(0, -2)), bytes.length - 2)
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return bits.replace(/.{1,5}/g, (five) => BASE32.charAt(Number.parseInt(five.padEnd(5, '0'), 2)))
}

/** Computes CRC-16/XMODEM. */
function crc16(bytes: Uint8Array): number {
  return bytes.reduce((sum, byte) => {
    let crc = sum ^ (byte << 8)
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff
    return crc
  }, 0)
}
