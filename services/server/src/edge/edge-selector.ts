import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { ServeError } from '@tutti/errors'
import type { BackendSelector, InferenceBackend } from '../inference-backend.ts'
import { bearerTokenOf } from '../request/bearer-token.ts'
import { EdgeBackend } from './edge-backend.ts'

/** Models that hosts lead to. Several routes may name one host. */
export interface EdgeRoute {
  /** Lower case, without a port; `*.` at the beginning stands for one label or more. */
  readonly hosts: readonly string[]
  readonly models: readonly string[]
  /** SHA-256 of the bearer token that a request must bring, in hex; absent: none is wanted. */
  readonly tokenSha256?: string | undefined
}

export interface EdgeSelectorOptions {
  readonly backend: InferenceBackend
  /** As they are now; the same list as long as nothing has changed. */
  readonly routes: () => readonly EdgeRoute[]
}

/** What a host leads to, by token. */
interface HostView {
  /** Without a token; absent if every model wants one. */
  readonly open: InferenceBackend | undefined
  /** By the token's digest; empty if no model wants one. */
  readonly byToken: ReadonlyMap<string, InferenceBackend>
}

const LONGEST_HOST = 253

/**
 * Lets requests from outside reach what their host and bearer token lead to, and nothing else.
 *
 * @returns throws NOT_FOUND for a host that leads nowhere, and UNAUTHENTICATED where a token is wanted that is not there.
 */
export function createEdgeSelector({ backend, routes }: EdgeSelectorOptions): BackendSelector {
  let compiled: readonly EdgeRoute[] | undefined
  let views: ReadonlyMap<string, HostView> = new Map()
  return (headers) => {
    const current = routes()
    if (current !== compiled) {
      views = compile(current, backend)
      compiled = current
    }
    const host = hostOf(headers)
    const view = findView(views, host)
    if (view === undefined) {
      throw new ServeError('NOT_FOUND', `host '${host.slice(0, LONGEST_HOST)}' leads to no model`)
    }
    return choose(view, headers)
  }
}

function choose(view: HostView, headers: IncomingHttpHeaders): InferenceBackend {
  if (view.byToken.size > 0) {
    const token = bearerTokenOf(headers)
    // Looked up by digest: how long that takes says nothing about the token.
    const digest = token === undefined ? '' : createHash('sha256').update(token).digest('hex')
    const known = view.byToken.get(digest)
    if (known !== undefined) return known
    if (token !== undefined) {
      throw new ServeError('UNAUTHENTICATED', 'authorization: got a bearer token that is not known')
    }
  }
  if (view.open !== undefined) return view.open
  throw new ServeError('UNAUTHENTICATED', 'authorization: got no bearer token, want one')
}

function compile(
  routes: readonly EdgeRoute[],
  backend: InferenceBackend,
): ReadonlyMap<string, HostView> {
  const hosts = new Set(routes.flatMap((route) => route.hosts))
  return new Map([...hosts].map((host) => [host, compileHost(host, routes, backend)]))
}

function compileHost(
  host: string,
  routes: readonly EdgeRoute[],
  backend: InferenceBackend,
): HostView {
  const own = routes.filter((route) => route.hosts.includes(host))
  const all = new Set(own.flatMap((route) => route.models))
  const toBackend = (reached: readonly EdgeRoute[]): InferenceBackend => {
    const names = new Set(reached.flatMap((route) => route.models))
    const locked = new Set([...all].filter((name) => !names.has(name)))
    return new EdgeBackend({ backend, names, locked })
  }
  const open = own.filter((route) => route.tokenSha256 === undefined)
  const tokens = new Set(own.flatMap(({ tokenSha256 }) => tokenSha256 ?? []))
  return {
    open: open.length === 0 ? undefined : toBackend(open),
    byToken: new Map(
      [...tokens].map((token) => [
        token,
        toBackend([...open, ...own.filter((route) => route.tokenSha256 === token)]),
      ]),
    ),
  }
}

/** An exact name goes before a wildcard, a longer wildcard before a shorter one. */
function findView(views: ReadonlyMap<string, HostView>, host: string): HostView | undefined {
  const exact = views.get(host)
  if (exact !== undefined) return exact
  for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
    const view = views.get(`*${host.slice(dot)}`)
    if (view !== undefined) return view
  }
  return undefined
}

/** The name that the client called, without a port. */
function hostOf(headers: IncomingHttpHeaders): string {
  const { [':authority']: authority, host } = headers
  const written = String(authority ?? host ?? '').slice(0, 2 * LONGEST_HOST)
  return written.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}
