import type { IncomingHttpHeaders } from 'node:http'
import type { SecretText } from '@tutti/chassis'
import { HttpClient, type HttpHeaders } from '../fetch/http-get.ts'

/** A request that a cloud's library sends on its way to a token. */
export interface TokenRequest {
  readonly url: URL
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly headers: HttpHeaders
  readonly body?: string
}

export interface TokenAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Sends a request within the bounds of a fetch. @throws ServeError as `HttpClient` does. */
export type SendTokenRequest = (request: TokenRequest) => Promise<TokenAnswer>

/**
 * Gives the token of a request. The library keeps a token until shortly before it expires.
 *
 * @throws ServeError ARTIFACT_DENIED and ARTIFACT_UNAVAILABLE for an answer without a token; another Error for credentials that
 * cannot be used, without their values.
 */
export type TokenSource = (send: SendTokenRequest) => Promise<string>

/**
 * The identity of a program at Azure: `workload` has a token of its Kubernetes cluster, `secret` a client's secret, and `managed`
 * is the identity of its machine.
 */
export type AzureIdentity =
  | {
      readonly kind: 'workload'
      readonly tenantId: string
      readonly clientId: string
      readonly tokenFile: string
      /** Address of the server that gives tokens; Azure's if undefined. */
      readonly authorityHost: string | undefined
    }
  | {
      readonly kind: 'secret'
      readonly tenantId: string
      readonly clientId: string
      readonly secret: SecretText
      readonly authorityHost: string | undefined
    }
  | {
      readonly kind: 'managed'
      /** Client id of an identity that a user has assigned to the machine; undefined for the machine's own identity. */
      readonly clientId: string | undefined
    }

/** The clouds' libraries for credentials. Each is loaded at its first use. */
export interface CloudIdentity {
  /**
   * Opens a file of Google's credentials, of any type.
   *
   * @param key - its members.
   * @throws Error if the library refuses the file.
   */
  google(key: Readonly<Record<string, unknown>>): Promise<TokenSource>
  azure(identity: AzureIdentity): Promise<TokenSource>
}

/** Characters. */
const MAX_ANSWER = 64 * 1024

export function tokenSender(http: ConstructorParameters<typeof HttpClient>[0]): SendTokenRequest {
  const client = new HttpClient(http)
  return async ({ url, ...request }) => {
    const answer = await client.send(url, request)
    const text = await client.text(answer, 'a token', MAX_ANSWER)
    return { status: answer.status, headers: answer.headers, text }
  }
}
