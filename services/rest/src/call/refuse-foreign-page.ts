import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { ServeError } from '@tutti/errors'

/**
 * Refuses a call that changes the server if a page of another site makes it: a browser sends such a form or script to a server
 * on the user's machine without asking. Only browsers send these headers, so other clients are never refused.
 *
 * A page may also reach this server under a name of its own (DNS rebinding). Then both headers say that it is the same site, so
 * a browser must call by an address or as localhost.
 *
 * @throws ServeError FOREIGN_PAGE
 * @see https://www.w3.org/TR/fetch-metadata/, https://www.rfc-editor.org/rfc/rfc6454#section-7
 */
export function refuseForeignPage(headers: IncomingHttpHeaders): void {
  const { origin, host = '', 'sec-fetch-site': site } = headers
  if (site === 'cross-site') throw foreignPage(`sec-fetch-site 'cross-site'`, `'same-origin'`)
  if (origin === undefined) return
  const page = URL.canParse(origin) ? new URL(origin) : undefined
  // `null` is the origin of a page without one, such as a file or a frame in a sandbox.
  if (page === undefined || page.host !== hostWithoutDefaultPort(page, host))
    throw foreignPage(`origin '${origin.slice(0, 256)}'`, `the server's own`)
  if (isLocalName(page.hostname)) return
  throw foreignPage(`origin '${origin.slice(0, 256)}'`, 'localhost or an IP address')
}

/** As URL writes it: `host:80` of an http page is `host`. */
function hostWithoutDefaultPort({ protocol }: URL, host: string): string | undefined {
  const url = `${protocol}//${host}`
  return URL.canParse(url) ? new URL(url).host : undefined
}

/** Checks whether a host is an IP address or localhost, which DNS cannot lead elsewhere. @param hostname - the host in a URL. */
export function isLocalName(hostname: string): boolean {
  const name = hostname.replace(/^\[|\]$/g, '')
  return isIP(name) > 0 || name === 'localhost' || name.endsWith('.localhost')
}

function foreignPage(got: string, want: string): ServeError {
  return new ServeError(
    'FOREIGN_PAGE',
    `a web page must not change this server: got ${got}, want ${want}; use a client that is no browser`,
  )
}
