import type { IncomingHttpHeaders } from 'node:http'
import { ServeError } from '@tutti/errors'
import { isLocalName, refuseForeignPage } from '@tutti/rest'
import { type Caller } from '@tutti/serving'

/** Values of `sec-fetch-site` that browsers send for a page of the same origin, and for a user who types an address. */
const OWN_SITES: readonly unknown[] = [undefined, 'same-origin', 'none']

/**
 * Refuses calls that a page of another site makes through the user's browser.
 *
 * - The host must be an address or localhost. A page of another site can lead its own name to this server (DNS rebinding), and
 *   would then count as the same site.
 * - Data are only for the console's own page; its address itself may be followed from anywhere.
 *
 * @throws ServeError FOREIGN_PAGE
 */
export function checkCaller({ headers, route = '' }: Pick<Caller, 'headers' | 'route'>): void {
  checkHost(headers)
  if (!route.startsWith('/console/api/')) return
  const { 'sec-fetch-site': site } = headers
  if (!OWN_SITES.includes(site)) {
    throw foreignPage(`sec-fetch-site '${String(site)}'`, `'same-origin'`)
  }
  refuseForeignPage(headers)
}

function checkHost({ host = '' }: IncomingHttpHeaders): void {
  const url = `http://${host}`
  if (URL.canParse(url) && isLocalName(new URL(url).hostname)) return
  throw foreignPage(`host '${host.slice(0, 256)}'`, 'localhost or an IP address')
}

function foreignPage(got: string, want: string): ServeError {
  return new ServeError(
    'FOREIGN_PAGE',
    `the console is called by another page: got ${got}, want ${want}`,
  )
}
