import type { RestRoute, RestServerOptions } from '@tutti/rest'
import type { BackendSelector, Caller, InferenceBackend } from '@tutti/serving'

/** A listener for people: a page and what it reads and calls, under the rules that callers of the HTTP API have. */
export interface PageServerOptions {
  readonly address: string
  /** 0 for any free port. */
  readonly port: number
  readonly routes: readonly RestRoute[]
  /** Headers of every answer. */
  readonly headers: Readonly<Record<string, string>>
  /** Looks at each call before its credentials. @throws ServeError for one that a browser must not make. */
  readonly check: (caller: Caller) => void
  /** Whether a route needs no identity, because it says nothing about models. */
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

/** @param o.select - what the callers of the HTTP API reach; everything if absent. */
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
