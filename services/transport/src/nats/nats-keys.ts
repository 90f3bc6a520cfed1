import { type Authenticator, jwtAuthenticator, nkeyAuthenticator, nkeys } from 'nats'

/** The keys with which a client signs the broker's nonce. */
export interface SignInKeys {
  readonly nkeySeed?: string
  readonly credentials?: { readonly jwt: string; readonly seed: string }
}

/** Tells whether a text is the seed of a user's nkey, `SU...`: base32 with a checksum. */
export function isUserSeed(text: string): boolean {
  try {
    return nkeys.fromSeed(toBytes(text)).getPublicKey().startsWith('U')
  } catch {
    // The library says by codes what is wrong with it; to its owner it is no seed.
    return false
  }
}

/** Makes the function that signs the broker's nonce; undefined without a key. */
export function toAuthenticator({ credentials, nkeySeed }: SignInKeys): Authenticator | undefined {
  if (credentials !== undefined) {
    return jwtAuthenticator(credentials.jwt, toBytes(credentials.seed))
  }
  return nkeySeed === undefined ? undefined : nkeyAuthenticator(toBytes(nkeySeed))
}

function toBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}
