import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { assert } from '@tutti/errors'

/**
 * Text of a PEM file and its first certificate, which is the server's or the client's own. Those of its issuers follow in the
 * file.
 */
export interface PemCertificates {
  readonly text: string
  readonly first: X509Certificate
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/**
 * Parses every certificate of a PEM file. TLS would silently leave out a certificate that it cannot read.
 *
 * @throws Error whose text continues a sentence that begins with the file's name: "holds no certificate in PEM". It quotes
 * nothing.
 */
export function parseCertificates(text: string): PemCertificates {
  const [first, ...others] = text.match(CERTIFICATE) ?? []
  if (first === undefined) throw new Error('holds no certificate in PEM')
  try {
    const [parsed] = [first, ...others].map((block) => new X509Certificate(block))
    assert(parsed !== undefined, 'the first block is there')
    return { text, first: parsed }
  } catch (cause) {
    throw new Error('holds a certificate that cannot be read', { cause })
  }
}

/** Reads the private key of a PEM file. @throws Error as `parseCertificates` does. */
export function parsePrivateKey(text: string): {
  readonly text: string
  readonly object: KeyObject
} {
  try {
    return { text, object: createPrivateKey(text) }
  } catch (cause) {
    const isEncrypted = text.includes('ENCRYPTED')
    const want = isEncrypted ? 'a key with a passphrase, want one without' : 'no private key in PEM'
    throw new Error(`holds ${want}`, { cause })
  }
}
