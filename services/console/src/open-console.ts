import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  answerInfer,
  isLoopback,
  jsonReply,
  type PageServerOptions,
  type RestCall,
  type RestRoute,
} from '@tutti/server'
import { assetRoutes, PAGE_HEADERS, PUBLIC_ROUTES } from './assets.ts'
import { checkCaller } from './check-caller.ts'
import type { ConsoleFlags } from './console-flags.ts'
import { ConsoleReads } from './console-reads.ts'
import type { ConsoleSource } from './console-source.ts'

export interface ConsoleOptions {
  readonly flags: ConsoleFlags & {
    readonly id: string
    readonly 'allow-http': boolean
    readonly 'http-port': number
    readonly 'access-file'?: string | undefined
  }
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
  const tryRefusal = whyNotTried(o.flags)
  const httpPort =
    o.flags['allow-http'] && o.flags['http-port'] > 0 ? o.flags['http-port'] : undefined
  const { id: name } = o.flags
  const { version, scope, source, clock } = o
  const server = { name, version, scope, ...(httpPort !== undefined && { httpPort }) }
  const reads = new ConsoleReads({ source, server, tryRefusal, clock })
  return {
    address,
    port,
    headers: PAGE_HEADERS,
    routes: [...assetRoutes(), ...readRoutes(reads), ...inferRoutes(tryRefusal)],
    check: checkCaller,
    isPublic: (route) => PUBLIC_ROUTES.has(route),
  }
}

/** Runs requests only where their callers are on this machine, or prove who they are. */
function whyNotTried(flags: ConsoleOptions['flags']): string {
  const { 'console-address': address, 'access-file': accessFile } = flags
  if (accessFile !== undefined || address === 'localhost' || isLoopback(address)) return ''
  return `The console listens on ${address}, where it only shows. To try models, start the server with --access-file, or with a --console-address of the loopback.`
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

/** The inference of the HTTP API, as its clients call it. */
function inferRoutes(tryRefusal: string): readonly RestRoute[] {
  const answer = (call: RestCall) => {
    if (tryRefusal !== '') throw new ServeError('ACCESS_DENIED', tryRefusal)
    return answerInfer(call)
  }
  const paths = ['/v2/models/:model/infer', '/v2/models/:model/versions/:version(^\\d+$)/infer']
  return paths.map((path) => ({ path, methods: ['POST'], answer }))
}
