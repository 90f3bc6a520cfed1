import { createHash } from 'node:crypto'
import { createAccount, createOperator, createUser, type KeyPair } from 'nkeys.js'

/** Who a nats-server lets in: by name and password, or by public nkey. */
export type NatsUser = (
  | { readonly user: string; readonly password: string }
  | { readonly nkey: string }
) & {
  /** Subjects to publish and subscribe; absent means all. */
  readonly allow?: readonly string[]
}

/** Makes the lines of a server's configuration that let in these users and no others. */
export function usersConfig(users: readonly NatsUser[]): string {
  // The server's configuration syntax takes JSON.
  const entries = users.map(({ allow, ...user }) =>
    JSON.stringify(
      allow === undefined ? user : { ...user, permissions: { publish: allow, subscribe: allow } },
    ),
  )
  return `authorization { users: [${entries.join(', ')}] }`
}

/** A user's key pair as nkeys write it: `U...` and `SU...`. */
export interface NatsKey {
  readonly publicKey: string
  readonly seed: string
}

export function createNatsKey(): NatsKey {
  return textsOf(createUser())
}

export interface NatsCredentialsOptions {
  /** Subjects to publish and subscribe; absent means all. */
  readonly allow?: readonly string[]
  /** Seconds since the epoch; absent means never. */
  readonly expiresAtS?: number
}

/** Makes an operator with one account, for a server with a memory resolver. */
export function createNatsOperator() {
  const operator = createOperator()
  const account = createAccount()
  const operatorJwt = signJwt(operator, operator.getPublicKey(), 'operator', {})
  const accountJwt = signJwt(operator, account.getPublicKey(), 'account', { limits: NO_LIMITS })
  return {
    /** The server's configuration lines. */
    config: [
      `operator: ${operatorJwt}`,
      'resolver: MEMORY',
      `resolver_preload: { ${account.getPublicKey()}: ${accountJwt} }`,
    ].join('\n'),
    /** @returns the text of a credentials file of a new user of the account. */
    credentials: (o: NatsCredentialsOptions = {}): string => {
      const user = textsOf(createUser())
      return credentialsText(userJwt(account, user.publicKey, o), user.seed)
    },
  }
}

const NO_LIMITS = {
  subs: -1,
  data: -1,
  payload: -1,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
} as const

function userJwt(account: KeyPair, user: string, o: NatsCredentialsOptions): string {
  const permissions = o.allow === undefined ? {} : { allow: o.allow }
  const grant = { pub: permissions, sub: permissions, subs: -1, data: -1, payload: -1 }
  return signJwt(account, user, 'user', grant, o.expiresAtS)
}

/** A JWT of NATS, version 2: signed with an nkey, its id a digest of its claims. */
function signJwt(
  issuer: KeyPair,
  subject: string,
  type: 'operator' | 'account' | 'user',
  grant: object,
  expiresAtS?: number,
): string {
  const claims = {
    iat: 1,
    iss: issuer.getPublicKey(),
    sub: subject,
    name: type,
    nats: { ...grant, type, version: 2 },
    ...(expiresAtS !== undefined && { exp: expiresAtS }),
  }
  const jti = createHash('sha256').update(JSON.stringify(claims)).digest('hex')
  const head = toBase64({ typ: 'JWT', alg: 'ed25519-nkey' })
  const text = `${head}.${toBase64({ ...claims, jti })}`
  return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString('base64url')}`
}

function toBase64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function credentialsText(jwt: string, seed: string): string {
  return [
    '-----BEGIN NATS USER JWT-----',
    jwt,
    '------END NATS USER JWT------',
    '',
    '-----BEGIN USER NKEY SEED-----',
    seed,
    '------END USER NKEY SEED------',
    '',
  ].join('\n')
}

function textsOf(pair: KeyPair): NatsKey {
  return { publicKey: pair.getPublicKey(), seed: Buffer.from(pair.getSeed()).toString() }
}
