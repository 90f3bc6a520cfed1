import { ServeError } from '@tutti/errors'
import type { HttpClient, HttpHeaders, StreamedAnswer } from './http-get.ts'
import { showUri } from './source-uri.ts'

const MAX_REDIRECTS = 5
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/**
 * Sends a GET request and follows redirects.
 *
 * @param o.authorization - header for the server of `start`; no other server gets it.
 * @throws as `HttpClient.get`; ARTIFACT_UNAVAILABLE for a redirect that leads from https to http, or too far.
 */
export async function followRedirects(
  client: HttpClient,
  start: URL,
  { headers, authorization }: { readonly headers: HttpHeaders; readonly authorization?: string },
): Promise<StreamedAnswer> {
  let url = start
  for (let redirects = 0; ; redirects++) {
    const hasAccess = url.origin === start.origin && authorization !== undefined
    const answer = await client.get(url, { ...headers, ...(hasAccess && { authorization }) })
    const { location } = answer.headers
    if (!REDIRECTS.has(answer.status) || location === undefined) return answer
    answer.body.destroy()
    url = toRedirect(url, location, redirects)
  }
}

function toRedirect(from: URL, location: string, redirects: number): URL {
  const refuse = (why: string): ServeError =>
    new ServeError('ARTIFACT_UNAVAILABLE', `'${showUri(from)}' leads ${why}`)
  if (redirects >= MAX_REDIRECTS) throw refuse(`further after ${MAX_REDIRECTS} redirects`)
  const to = URL.parse(location, from.href)
  if (to === null) throw refuse('to what is no address')
  const isDowngrade = from.protocol === 'https:' && to.protocol !== 'https:'
  if (isDowngrade || !/^https?:$/.test(to.protocol)) {
    throw refuse(`to '${showUri(to)}', which is not https`)
  }
  to.username = ''
  to.password = ''
  return to
}
