import { createHash } from 'node:crypto'
import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Caller } from '../backend/caller.ts'
import { type ClientCertificate, readClientCertificate } from '../listeners/client-certificate.ts'
import { bearerTokenOf } from './bearer-token.ts'
import type { QuotaMeter } from './quota-meter.ts'
import type { ServiceAccountTokens } from './service-account-tokens.ts'

/** The rights of a caller who has proven an identity. */
export interface Grant {
  /** Name of the identity; undefined: any caller, without a proof. */
  readonly identity: string | undefined
  /** Served names; undefined: all. */
  readonly models: ReadonlySet<string> | undefined
  readonly mayControl: boolean
  /** Absent for callers without an identity. */
  readonly meter: QuotaMeter | undefined
}

/** How a caller proves an identity. */
export type Proof =
  /** SHA-256 of a bearer token, in hex. */
  | { readonly tokenSha256: string }
  | { readonly serviceAccount: ServiceAccountProof }
  /** A name in the certificate of the client, as readClientCertificate gives it. */
  | { readonly certificate: string }

/** The ServiceAccount whose token proves an identity, and the audience that the token must have. */
export interface ServiceAccountProof {
  readonly namespace: string
  readonly name: string
  readonly audience: string
}

/** Finds the grants of callers by their bearer tokens and certificates. */
export class CallerCredentials {
  readonly #grants = new Map<string, readonly Grant[]>()
  readonly #tokens: ServiceAccountTokens | undefined
  readonly #clock: Pick<Clock, 'epochMs'>
  /** Certificates of clients, by connection. They are kept because reading one parses it. */
  readonly #certificates = new WeakMap<object, ClientCertificate>()

  /** @param tokens - checks ServiceAccount tokens; undefined: none is accepted. */
  constructor(
    proofs: readonly (readonly [Proof, Grant])[],
    tokens: ServiceAccountTokens | undefined,
    clock: Pick<Clock, 'epochMs'>,
  ) {
    this.#tokens = tokens
    this.#clock = clock
    for (const [proof, grant] of proofs) {
      const key = keyOf(proof)
      this.#grants.set(key, [...(this.#grants.get(key) ?? []), grant])
    }
  }

  get isEmpty(): boolean {
    return this.#grants.size === 0
  }

  /**
   * Finds the grants of a caller. A token counts before the certificate of the connection, which a proxy may share among its
   * clients.
   *
   * @returns an empty list for a caller with neither token nor certificate.
   * @throws ServeError UNAUTHENTICATED for a token or certificate that is not known, or a certificate that has expired.
   */
  find({ headers, socket }: Caller): readonly Grant[] {
    const token = bearerTokenOf(headers)
    if (token === undefined) return socket === undefined ? [] : this.#ofCertificate(socket)
    // Looked up by digest: how long that takes says nothing about the token.
    const tokenSha256 = createHash('sha256').update(token).digest('hex')
    const known = this.#grants.get(keyOf({ tokenSha256 })) ?? this.#ofServiceAccount(token)
    if (known.length > 0) return known
    throw new ServeError('UNAUTHENTICATED', 'authorization: got a bearer token that is not known')
  }

  #ofCertificate(socket: object): readonly Grant[] {
    const certificate = this.#certificates.get(socket) ?? readClientCertificate(socket)
    if (certificate === undefined) return []
    this.#certificates.set(socket, certificate)
    const { names, validToMs } = certificate
    const isOver = this.#clock.epochMs() > validToMs
    const known = names.flatMap((name) => this.#grants.get(keyOf({ certificate: name })) ?? [])
    if (!isOver && (known.length > 0 || names.length === 0)) return known
    const why = isOver ? `expired at ${new Date(validToMs).toISOString()}` : 'is not known'
    const text = `got a certificate of ${names.join(', ')}, which ${why}, and no bearer token`
    throw new ServeError('UNAUTHENTICATED', text)
  }

  #ofServiceAccount(token: string): readonly Grant[] {
    const claims = this.#tokens?.read(token)
    if (claims === undefined) return []
    const { subject, audiences } = claims
    return audiences.flatMap((audience) => this.#grants.get(accountKey(subject, audience)) ?? [])
  }
}

function keyOf(proof: Proof): string {
  if ('tokenSha256' in proof) return `token\n${proof.tokenSha256}`
  if ('certificate' in proof) return `certificate\n${proof.certificate}`
  const { namespace, name, audience } = proof.serviceAccount
  return accountKey(`system:serviceaccount:${namespace}:${name}`, audience)
}

/** Builds the key of an account. A line break occurs in no name, so that the parts stay apart. */
function accountKey(subject: string, audience: string): string {
  return `account\n${subject}\n${audience}`
}
