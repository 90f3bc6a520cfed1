import type { SendTokenRequest, TokenRequest } from '@tutti/repository'

/** An answer of a server of tokens. */
export interface ScriptedAnswer {
  readonly status?: number
  readonly json: unknown
}

/** Sends requests for tokens to a script instead of a server, and remembers them. */
export class ScriptedServer {
  readonly heard: TokenRequest[] = []
  readonly #answers: Readonly<Record<string, ScriptedAnswer | Error>>

  /** @param answers - answers by the beginning of an address; the first that fits the request counts. */
  constructor(answers: Readonly<Record<string, ScriptedAnswer | Error>>) {
    this.#answers = answers
  }

  readonly send: SendTokenRequest = (request) => {
    this.heard.push(request)
    const { href } = request.url
    const found = Object.entries(this.#answers).find(([begin]) => href.startsWith(begin))?.[1]
    if (found === undefined) return Promise.reject(new Error(`nothing is scripted for ${href}`))
    if (found instanceof Error) return Promise.reject(found)
    const { status = 200, json } = found
    const text = typeof json === 'string' ? json : JSON.stringify(json)
    return Promise.resolve({ status, headers: { 'content-type': 'application/json' }, text })
  }

  /** Lists the forms that were sent to the addresses with a beginning. */
  forms(begin: string): readonly Readonly<Record<string, string>>[] {
    return this.heard
      .filter(({ url }) => url.href.startsWith(begin))
      .map(({ body = '' }) => Object.fromEntries(new URLSearchParams(body)))
  }
}

const AUTHORITY = 'https://login.example/11111111-2222-3333-4444-555555555555'

/** Builds the answers of Microsoft Entra ID at `https://login.example`. @param token - answer to a request for a token. */
export function entraAnswers(token: ScriptedAnswer): Readonly<Record<string, ScriptedAnswer>> {
  return {
    [`${AUTHORITY}/v2.0/.well-known/`]: {
      json: {
        token_endpoint: `${AUTHORITY}/oauth2/v2.0/token`,
        authorization_endpoint: `${AUTHORITY}/oauth2/v2.0/authorize`,
        issuer: `${AUTHORITY}/v2.0`,
        jwks_uri: `${AUTHORITY}/discovery/v2.0/keys`,
      },
    },
    [`${AUTHORITY}/oauth2/v2.0/token`]: token,
  }
}
