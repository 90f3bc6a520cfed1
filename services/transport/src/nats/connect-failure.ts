import { ServeError } from '@tutti/errors'
import type { BrokerOptions } from '../endpoints.ts'
import { messageOf, propertyOf } from '../foreign-error.ts'

/**
 * Explains why a server could not be connected to, in words for the people who run it, where the error has a code.
 *
 * @param connectMs - milliseconds that the attempt had.
 */
export function describeConnectFailure(
  error: unknown,
  broker: BrokerOptions,
  connectMs: number,
): string {
  const text = messageOf(error)
  const code = propertyOf(error, 'code')
  const words = typeof code === 'string' ? WORDS[code] : undefined
  if (words !== undefined) return words({ broker, connectMs, text })
  const tlsAlert = error instanceof ServeError ? undefined : propertyOf(error, 'reason')
  return typeof tlsAlert === 'string' ? `TLS: ${tlsAlert}` : text
}

interface Failure {
  readonly broker: BrokerOptions
  readonly connectMs: number
  readonly text: string
}

const untrusted = ({ broker }: Failure): string => {
  const ca = broker.tls?.caFile
  const among = ca === undefined ? 'those that are trusted by default' : `those in "${ca}"`
  return `TLS: the certificate of the broker is not trusted: its authority is not among ${among}`
}

const clientUntrusted = ({ broker }: Failure): string =>
  `TLS: the broker does not trust the client certificate in "${broker.tls?.certFile}"`

const CLOSED_EARLY =
  'the connection was closed while it was made: no NATS server, or one that takes no more clients'

const unreachable = (): string => 'no way to this address'

const WORDS: Readonly<Record<string, (failure: Failure) => string>> = {
  AUTHORIZATION_VIOLATION: ({ broker }) =>
    `authorization violation: the broker does not let in ${signedInAs(broker)}`,
  AUTHENTICATION_EXPIRED: ({ broker }) => `the broker says that ${signedInAs(broker)} has expired`,
  ACCOUNT_EXPIRED: () => 'the account has expired',
  AUTHENTICATION_TIMEOUT: () => 'the broker waited too long for the sign-in',
  TIMEOUT: ({ connectMs }) => `timeout: no answer within ${connectMs} ms`,
  ETIMEDOUT: () => 'timeout: no answer from this address',
  CONNECTION_CLOSED: () => CLOSED_EARLY,
  ECONNREFUSED: () => 'connection refused: nothing listens there',
  ECONNRESET: () => CLOSED_EARLY,
  EPIPE: () => CLOSED_EARLY,
  ENOTFOUND: () => 'no such host',
  EAI_AGAIN: () => 'the name of the host cannot be resolved now',
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  SERVER_OPT_NA: () => 'TLS: it was asked for, and the broker does not offer it',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  CERT_HAS_EXPIRED: () => 'TLS: the certificate of the broker has expired',
  CERT_NOT_YET_VALID: () => 'TLS: the certificate of the broker is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: ({ text }) => `TLS: hostname mismatch: ${text}`,
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: () => 'TLS: the broker wants a client certificate',
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: clientUntrusted,
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: ({ broker, ...failure }) =>
    broker.tls?.certFile === undefined
      ? 'TLS: the broker wants a client certificate'
      : clientUntrusted({ broker, ...failure }),
}

/** Describes how the client signs in, without any secret. */
function signedInAs(broker: BrokerOptions): string {
  if (broker.user !== undefined) return `user "${broker.user}" with this password`
  if (broker.token !== undefined) return 'this token'
  if (broker.nkeyFile !== undefined) return `the nkey in "${broker.nkeyFile}"`
  if (broker.credentialsFile !== undefined) return `the credentials in "${broker.credentialsFile}"`
  return 'clients that do not sign in'
}
