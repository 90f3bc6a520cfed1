import type { Clock } from '@tutti/chassis'
import { answerPageInfer, answerPageStream, jsonReply, type RestRoute } from '@tutti/rest'
import { type PageServerOptions } from '@tutti/server'
import type { ModelDetail } from './api/model-detail.ts'
import { assetRoutes, PAGE_HEADERS, PUBLIC_ROUTES } from './assets.ts'
import { checkCaller } from './check-caller.ts'
import type { ConsoleFlags } from './console-flags.ts'
import { ConsoleReads } from './console-reads.ts'
import type { ClusterSource, ConsoleSource } from './console-source.ts'
import { readNextRequest } from './read-next-request.ts'

export interface ConsoleOptions {
  readonly flags: ConsoleFlags & {
    readonly id: string
    readonly 'allow-http': boolean
    readonly 'http-port': number
    readonly 'http-use-ssl': boolean
    readonly 'http-use-ssl-mutual': boolean
  }
  readonly source: ConsoleSource
  /** Source of the cluster's resources; absent without a cluster. */
  readonly cluster?: ClusterSource | undefined
  /** Version of the executable. */
  readonly version: string
  /** The processes that this server sees, for people: `one process`, say. */
  readonly scope: string
  /** Name of the machine or pod, for callers who may see replicas; absent: it is not shown. */
  readonly host?: string
  readonly clock: Clock
}

/**
 * Makes the options with which the servers serve the console; undefined without `--console-port`.
 *
 * @throws ServeError SETTING_INVALID if the page was not built.
 */
export function openConsole(o: ConsoleOptions): PageServerOptions | undefined {
  const { 'console-port': port, 'console-address': address } = o.flags
  if (port === undefined) return undefined
  const { version, scope, host, source, cluster, clock } = o
  const server = { name: o.flags.id, version, scope, ...(host !== undefined && { host }) }
  const mayInfer = o.flags['console-infer']
  const http = httpOf(o.flags)
  const reads = new ConsoleReads({ source, cluster, server, mayInfer, http, clock })
  return {
    address,
    port,
    headers: PAGE_HEADERS,
    routes: [
      ...assetRoutes(),
      ...readRoutes(reads),
      nextRoute(o),
      ...(mayInfer ? INFER_ROUTES : []),
    ],
    check: checkCaller,
    isPublic: (route) => PUBLIC_ROUTES.has(route),
  }
}

/** Returns the HTTP address at which clients find the same models, for the lines that the page shows to copy. */
function httpOf(flags: ConsoleOptions['flags']): ModelDetail['http'] {
  if (!flags['allow-http']) return undefined
  const isSecure = flags['http-use-ssl'] || flags['http-use-ssl-mutual']
  return { port: flags['http-port'], isSecure }
}

/** The inference of the HTTP API. Under the page's own paths, so that calls of other pages are refused here too. */
const INFER_ROUTES: readonly RestRoute[] = ['', '/versions/:version(^\\d+$)'].flatMap((version) => [
  toInferRoute(`${version}/infer`, answerPageInfer),
  toInferRoute(`${version}/stream`, answerPageStream),
])

function toInferRoute(path: string, answer: RestRoute['answer']): RestRoute {
  return {
    method: 'POST',
    path: `/console/api/models/:model${path}`,
    group: 'page',
    admission: 'request',
    document: 'none',
    answer,
  }
}

/** Fields that the routes of all calls that read have in common. */
const READS = { method: 'GET', group: 'page', admission: 'control', document: 'none' } as const

/** Makes the route of single requests; see `RequestCaptures` of the server. */
function nextRoute({ source, clock }: Pick<ConsoleOptions, 'source' | 'clock'>): RestRoute {
  return {
    ...READS,
    path: '/console/api/models/:model/next',
    answer: async ({ backend, parameters, query }) => {
      const model = parameters['model'] ?? ''
      return jsonReply(await readNextRequest({ source, backend, model, query, clock }))
    },
  }
}

function readRoutes(reads: ConsoleReads): readonly RestRoute[] {
  return [
    {
      ...READS,
      path: '/console/api/overview',
      answer: async ({ backend }) => jsonReply(await reads.overview(backend)),
    },
    {
      ...READS,
      path: '/console/api/models/:model',
      answer: async ({ backend, parameters }) =>
        jsonReply(await reads.model(backend, parameters['model'] ?? '')),
    },
  ]
}
