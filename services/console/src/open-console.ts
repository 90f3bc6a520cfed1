import type { Clock } from '@tutti/chassis'
import { jsonReply, type PageServerOptions, type RestRoute } from '@tutti/server'
import { assetRoutes, PAGE_HEADERS, PUBLIC_ROUTES } from './assets.ts'
import { checkCaller } from './check-caller.ts'
import type { ConsoleFlags } from './console-flags.ts'
import { ConsoleReads } from './console-reads.ts'
import type { ConsoleSource } from './console-source.ts'

export interface ConsoleOptions {
  readonly flags: ConsoleFlags & { readonly id: string }
  readonly source: ConsoleSource
  /** Of the executable. */
  readonly version: string
  /** What this server sees, for people: `one process`, say. */
  readonly scope: string
  readonly clock: Clock
}

/**
 * What the servers need to serve the console; undefined if the flags do not ask for it.
 *
 * @throws ServeError SETTING_INVALID if the page was not built.
 */
export function openConsole(o: ConsoleOptions): PageServerOptions | undefined {
  const { 'console-port': port, 'console-address': address } = o.flags
  if (port === undefined) return undefined
  const { version, scope, source, clock } = o
  const reads = new ConsoleReads({ source, server: { name: o.flags.id, version, scope }, clock })
  return {
    address,
    port,
    headers: PAGE_HEADERS,
    routes: [...assetRoutes(), ...readRoutes(reads)],
    check: checkCaller,
    isPublic: (route) => PUBLIC_ROUTES.has(route),
  }
}

function readRoutes(reads: ConsoleReads): readonly RestRoute[] {
  return [
    {
      path: '/console/api/overview',
      methods: ['GET'],
      answer: async ({ backend }) => jsonReply(await reads.overview(backend)),
    },
    {
      path: '/console/api/models/:model',
      methods: ['GET'],
      answer: async ({ backend, parameters }) =>
        jsonReply(await reads.model(backend, parameters['model'] ?? '')),
    },
  ]
}
