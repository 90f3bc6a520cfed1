import { parseFlags } from '@tutti/chassis'
import type { Client } from '@tutti/kube'
import { type ApiServer, type HttpFaultProxy, startHttpFaultProxy } from '@tutti/kube/testing'
import { createControllers } from '../controllers/index.ts'
import { OPERATOR_FLAGS } from '../operator-flags.ts'
import type { EventInput } from '../runtime/events.ts'
import { ensureIssuer, ISSUER_FLAGS } from './nats-issuer.ts'
import { type EndedPass, RestWatch } from './rest-watch.ts'
import { AROUND, closeCaches, endControllers, openClient, startCaches } from './running-parts.ts'
import { testMetrics } from './test-metrics.ts'

export type CaseOperator = Awaited<ReturnType<typeof startCaseOperator>>

export interface CaseOperatorOptions {
  /** Namespace to serve; all if absent. */
  readonly namespace?: string
  /** Namespace of the operator itself. */
  readonly system: string
  /** Port of the metrics listeners of pods. */
  readonly podPort: number
  /** Client that asks the server without a proxy. */
  readonly direct: Client
  /** Token of the operator; default: one of system:masters. */
  readonly token?: string
  /** Milliseconds of silence after which a watch counts as dead; default 150 s. */
  readonly idleMs?: number
  /** True if Kubernetes' own controllers run; default true. */
  readonly hasControllers?: boolean
  /** Function that prepares the proxy before the operator sends anything. */
  readonly prepare?: (proxy: HttpFaultProxy) => void
  /** Milliseconds between two looks at the load of pods; default 15 s. */
  readonly scalingMs?: number
}

/** Between two looks at what only a person can set right: longer than what an operator at rest waits for. */
const TROUBLE_MS = 2000

/**
 * Starts all controllers of the operator behind a proxy, without an election. It resolves when the caches have synced and the
 * controllers have started. The caller stops it.
 */
export async function startCaseOperator(server: ApiServer, o: CaseOperatorOptions) {
  await ensureIssuer(server.plain, o.system)
  const proxy = await startHttpFaultProxy(server)
  o.prepare?.(proxy)
  const { client, close } = openClient(proxy.access(o.token))
  const metrics = testMetrics()
  const rest = new RestWatch({
    client,
    direct: o.direct,
    metrics: metrics.runtime,
    writes: () => proxy.writes.length,
    ...(o.idleMs !== undefined && { idleMs: o.idleMs }),
    ...(o.hasControllers !== undefined && { hasControllers: o.hasControllers }),
  })
  const events: EventInput[] = []
  const { values: flags } = parseFlags(OPERATOR_FLAGS, [
    ...ISSUER_FLAGS,
    '--router-replicas=1',
    ...(o.namespace === undefined ? [] : [`--watch-namespace=${o.namespace}`]),
  ])
  const { clock, openReflector } = rest
  const { caches, controllers } = createControllers({
    clock,
    openReflector,
    metrics: rest.metrics,
    client,
    log: AROUND.log,
    events: { record: (event: EventInput) => void events.push(event) },
    scrapes: metrics.metrics,
    flags,
    namespace: o.system,
    podPort: o.podPort,
    troublePollMs: TROUBLE_MS,
    ...(o.scalingMs !== undefined && { scalingMs: o.scalingMs }),
  })
  metrics.runtime.readCaches(() => caches.map((cache) => cache.reading()))
  const end = async (): Promise<void> => {
    await endControllers(controllers)
    await closeCaches(caches)
    await close()
    await proxy.close()
  }
  let ending: Promise<void> | undefined
  const stop = (): Promise<void> => (ending ??= end())
  await startCaches(caches)
  for (const controller of controllers) controller.start()
  return {
    proxy,
    metrics,
    /** Events that were recorded so far. */
    events: events as readonly EventInput[],
    /** Reconciles in the order in which they ended. */
    passes: rest.passes as readonly EndedPass[],
    /** Resolves when the operator has nothing left to do. */
    atRest: (options?: Parameters<RestWatch['atRest']>[0]) => rest.atRest(options),
    /** Kills the operator: the proxy refuses its requests from now on, and its memory is lost. */
    kill: () => {
      proxy.refuse()
      return stop()
    },
    /** Stops the operator in order. Further calls have no effect. */
    stop,
  }
}
