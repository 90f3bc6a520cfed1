import { ServeError } from '@tutti/errors'
import type { SendTokenRequest, TokenAnswer, TokenRequest } from '@tutti/repository'

/** Characters of what a server says. */
const MAX_DETAIL = 300
/** Statuses by which the credentials are wrong, so that no further attempt helps. */
const DENIED = new Set([400, 401, 403])

/** Sends the requests of a library, and remembers how the last one ended: libraries hide that, each in its way. */
export class TokenRequests {
  readonly #cloud: string
  #send: SendTokenRequest | undefined
  #last:
    | { readonly url: URL; readonly answer?: TokenAnswer; readonly failure?: unknown }
    | undefined

  /** @param cloud - name of the cloud, for messages. */
  constructor(cloud: string) {
    this.#cloud = cloud
  }

  /**
   * Asks the library for a token.
   *
   * @param send - sends the library's requests.
   * @param library - calls the library; gives undefined if the library has no token.
   * @throws as `TokenSource`.
   */
  async ask(send: SendTokenRequest, library: () => Promise<string | undefined>): Promise<string> {
    this.#send = send
    this.#last = undefined
    try {
      const token = await library()
      // Google's library writes the absent one into its header, too.
      if (token !== undefined && token !== 'undefined' && /^[!-~]+$/.test(token)) return token
    } catch (error) {
      throw this.#toFailure(error)
    }
    throw this.#toFailure(new Error('no token'))
  }

  async send(request: TokenRequest): Promise<TokenAnswer> {
    const { url } = request
    try {
      if (this.#send === undefined) throw new Error('bug: asked before `ask`')
      const answer = await this.#send(request)
      this.#last = { url, answer }
      return answer
    } catch (failure) {
      this.#last = { url, failure }
      throw failure
    }
  }

  #toFailure(error: unknown): unknown {
    if (this.#last === undefined) return withoutContent(error)
    const { url, answer, failure } = this.#last
    if (answer === undefined) return failure
    const said = detailOf(answer.text)
    // It may have answered with what the library cannot use.
    const detail = said === '' && answer.status === 200 ? ' without a token' : said
    return new ServeError(
      DENIED.has(answer.status) ? 'ARTIFACT_DENIED' : 'ARTIFACT_UNAVAILABLE',
      `'${url.origin}${url.pathname}' answered ${answer.status}, asked for a token of ${this.#cloud}${detail}`,
    )
  }
}

/** Checks the method of a library's request. @throws Error for a method that no request for a token has. */
export function toMethod(method: string): 'GET' | 'POST' | 'PUT' {
  if (method === 'GET' || method === 'POST' || method === 'PUT') return method
  throw new Error(`bug: the method ${method}`)
}

/** Finds what a server says of a refusal: as OAuth has it, or as Google's APIs do. */
function detailOf(text: string): string {
  const members = parse(text)
  const error: unknown = members['error']
  const { message } = Object(error)
  const [said] = [members['error_description'], message, error].filter(
    (one) => typeof one === 'string' && one !== '',
  )
  const [line = ''] = String(said ?? '').split(/[\r\n]/)
  return line === '' ? '' : `: ${line.slice(0, MAX_DETAIL)}`
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    return { ...Object(JSON.parse(text)) }
  } catch {
    // It is a page for people.
    return {}
  }
}

/** Removes quoted content from an error of a library that has not asked a server: its message quotes a text that is no JSON. */
function withoutContent(error: unknown): Error {
  if (!(error instanceof Error) || error instanceof SyntaxError) return new Error('it is no JSON')
  const [line = ''] = error.message.split('\n')
  return new Error(line, { cause: error })
}
