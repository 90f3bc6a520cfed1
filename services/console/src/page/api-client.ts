import type { z } from 'zod'

const TOKEN_KEY = 'tutti-token'

/** The error of a call that failed. Its message is the server's text, if the server has answered. */
export class CallFailure extends Error {
  /** HTTP status of the answer; 0 if there was none. */
  readonly status: number
  /** Reason of the catalogue of errors; '' where the server names none. */
  readonly reason: string
  /** Headers of the answer; none if there was none. */
  readonly headers: Headers

  constructor(status: number, message: string, headers = new Headers()) {
    super(message)
    this.status = status
    this.headers = headers
    this.reason = headers.get('tutti-error-reason') ?? ''
  }
}

/** Keeps the access token of calls, in this tab only; '' removes it. */
export function setToken(token: string): void {
  if (token === '') sessionStorage.removeItem(TOKEN_KEY)
  else sessionStorage.setItem(TOKEN_KEY, token)
}

export function hasToken(): boolean {
  return sessionStorage.getItem(TOKEN_KEY) !== null
}

/** Sends a request with the access token. @throws CallFailure if the server does not answer, or answers with an error. */
export async function call(path: string, o: RequestInit): Promise<Response> {
  const token = sessionStorage.getItem(TOKEN_KEY)
  const headers = new Headers(o.headers)
  if (token !== null) headers.set('authorization', `Bearer ${token}`)
  const response = await fetch(path, { ...o, headers }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new CallFailure(0, 'The server does not answer.')
  })
  if (response.ok) return response
  throw new CallFailure(response.status, await readError(response), response.headers)
}

/** Reads JSON that fits a schema. @throws CallFailure as `call`; also for an answer of another version of the server. */
export async function getJson<T>(
  path: string,
  schema: z.ZodType<T>,
  signal: AbortSignal,
): Promise<T> {
  const answer: unknown = await (await call(path, { signal })).json()
  const parsed = schema.safeParse(answer)
  if (parsed.success) return parsed.data
  throw new CallFailure(0, 'The server has another version than this page. Load the page again.')
}

async function readError(response: Response): Promise<string> {
  const text = await response.text().catch(() => '')
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null && 'error' in body) return String(body.error)
  } catch {
    // Not of the server itself: a proxy, say.
  }
  return text.slice(0, 500) || `The server answers with status ${response.status}.`
}
