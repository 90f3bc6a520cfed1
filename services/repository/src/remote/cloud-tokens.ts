import type { IncomingHttpHeaders } from 'node:http'
import type { Secret } from '@tutti/chassis'
import { HttpClient, type HttpHeaders } from '../fetch/http-get.ts'

/** The request of a library for a token, or for the token that it is given for. */
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
 * Gives the token of a request. It is kept until shortly before its end.
 *
 * @throws ServeError ARTIFACT_DENIED and ARTIFACT_UNAVAILABLE for an answer without a token; another Error for credentials that
 * cannot be used, without what they are.
 */
export type TokenSource = (send: SendTokenRequest) => Promise<string>

/** The identity of a program at Azure: a token that a Kubernetes cluster has given it, a secret, or that of its machine. */
export type AzureIdentity =
  | {
      readonly kind: 'workload'
      readonly tenantId: string
      readonly clientId: string
      readonly tokenFile: string
      /** Who gives tokens; Azure's if absent. */
      readonly authorityHost: string | undefined
    }
  | {
      readonly kind: 'secret'
      readonly tenantId: string
      readonly clientId: string
      readonly secret: Secret
      readonly authorityHost: string | undefined
    }
  | {
      readonly kind: 'managed'
      /** Client id of an identity that a user has made; that of the machine itself counts if absent. */
      readonly clientId: string | undefined
    }

/** The clouds' libraries for credentials. They are loaded when they are asked. */
export interface CloudIdentity {
  /** @param key - a file of credentials of Google, of any type. @throws Error for one that is refused. */
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
