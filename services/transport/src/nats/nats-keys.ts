import { nkeys } from 'nats'

/** True for the seed of a user's nkey, `SU...`: base32 with a checksum. */
export function isUserSeed(text: string): boolean {
  try {
    return nkeys.fromSeed(new TextEncoder().encode(text)).getPublicKey().startsWith('U')
  } catch {
    // The library says by codes what is wrong with it; to its owner it is no seed.
    return false
  }
}
