import { TLSSocket } from 'node:tls'

/** The certificate that a client has shown and proven. */
export interface ClientCertificate {
  readonly names: readonly string[]
  /** Time since the epoch at which the certificate expires. It proves nothing afterwards, even if the connection stays open. */
  readonly validToMs: number
}

/**
 * Reads the names in the certificate that the client of a connection has shown and proven: `CN:` with the common name of its
 * subject, then its subject alternative names as `DNS:`, `URI:` (SPIFFE ids among them), `email:` and `IP Address:`. The kind
 * is a part of a name, so that the common name `spiffe://a/b` is no SPIFFE id.
 *
 * Returns undefined if the listener asks for no certificates (no `--*-use-ssl-mutual`), or the connection is gone. A
 * certificate that no authority of the listener has signed never comes so far: its handshake fails.
 *
 * The certificate of a connection never changes. Ask once for each: reading it parses the certificate.
 *
 * @param socket - of an HTTP/1 request, or of an HTTP/2 session (`session.socket`).
 */
export function readClientCertificate(socket: object): ClientCertificate | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined) return undefined
  const { CN: common = [] } = certificate.toLegacyObject().subject
  const commonNames = [common].flat().map((name) => `CN:${name}`)
  const names = [...commonNames, ...splitNames(certificate.subjectAltName ?? '')]
  return { names, validToMs: certificate.validToDate.getTime() }
}

/** One name in Node's text: a value with commas or quotes is written in quotes, as JSON. */
const NAME = /([^:,]+):("(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-f]{4}))*"|[^,"]*)(?:, |$)/iuy

/**
 * Splits subject alternative names as Node writes them.
 *
 * @returns none at all if the text is not as Node writes it: a part of a name may not become a name.
 * @see https://nodejs.org/api/crypto.html#x509subjectaltname
 */
export function splitNames(text: string): readonly string[] {
  const names: string[] = []
  NAME.lastIndex = 0
  while (NAME.lastIndex < text.length) {
    const match = NAME.exec(text)
    if (match === null) return []
    const [, kind = '', value = ''] = match
    names.push(`${kind}:${value.startsWith('"') ? String(JSON.parse(value)) : value}`)
  }
  return names
}
