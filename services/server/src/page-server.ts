import type { RestRoute, RestServerOptions } from '@tutti/rest'
import type { BackendSelector, Caller, InferenceBackend } from '@tutti/serving'

/** The listener of a web page: its files, and the calls that it makes under the rules of the HTTP API. */
export interface PageServerOptions {
  readonly address: string
  /** 0 for any free port. */
  readonly port: number
  readonly routes: readonly RestRoute[]
  /** Headers of every answer. */
  readonly headers: Readonly<Record<string, string>>
  /** Check of each call, before its credentials are read. @throws ServeError for a call that a browser must not make. */
  readonly check: (caller: Caller) => void
  /** Function that tells whether a route needs no identity, because it tells nothing about models. */
  readonly isPublic: (route: string) => boolean
}

/** Browsers open up to six each. */
const MAX_CONNECTIONS = 64

/** Makes the options of the page's server; the page's calls are counted and bounded with all others. */
export function toPageOptions(page: PageServerOptions) {
  const { address, port, routes, headers } = page
  const bounds = { maxConnections: MAX_CONNECTIONS, maxConnectionsPerAddress: 0 }
  return { address, port, routes, headers, ...bounds } satisfies Partial<RestServerOptions>
}

/**
 * Creates the selector of a page's calls: it runs the page's check, and then selects as the HTTP API does, except on public
 * routes.
 *
 * @param o.select - the selector of the HTTP API; absent: every call reaches `backend`.
 */
export function createPageSelector(
  page: Pick<PageServerOptions, 'check' | 'isPublic'>,
  o: { readonly backend: InferenceBackend; readonly select?: BackendSelector },
): BackendSelector {
  const { backend, select = () => backend } = o
  return (caller) => {
    page.check(caller)
    return page.isPublic(caller.route ?? '') ? backend : select(caller)
  }
}
