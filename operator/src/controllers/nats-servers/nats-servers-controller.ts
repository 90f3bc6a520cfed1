import type { Clock, Logger } from '@tutti/chassis'
import { SECRET } from '@tutti/kube'
import { Cache, type OpenReflector } from '../../runtime/cache.ts'
import { Controller } from '../../runtime/controller.ts'
import type { ManagedController } from '../../runtime/manager.ts'
import type { RuntimeMetrics } from '../../runtime/metrics.ts'
import { referenceSource, type Source } from '../../runtime/sources.ts'
import type { ControllerSet } from '../context.ts'

/** The part of a tenancy that looks after the NATS servers. AccountTenancy and ExternalTenancy have it. */
export interface ServersKeeper {
  readonly secretNames: readonly string[]
  ensureServers(o: { readonly signal: AbortSignal }): Promise<{
    readonly issuer: string
    readonly requeueAfterMs?: number
  }>
  close?(): Promise<void>
}

export interface NatsServersOptions {
  readonly tenancy: ServersKeeper
  /** Sources of the controller in addition to those of its own Secrets. */
  readonly sources?: readonly Source[]
  readonly openReflector: OpenReflector
  /** Namespace of the operator. */
  readonly namespace: string
  /**
   * Callback when another key signs credentials, so that every namespace must be reconciled. It is also called for the first key
   * after a start, because some namespaces may have been reconciled before a rotation of that time.
   */
  readonly onIssuerChanged: () => void
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: RuntimeMetrics
}

/** The only key of this controller, as there is one set of servers. */
export const SERVERS_KEY = 'servers'

/** Looks at the servers once at the start, when there is no object yet that could say so. */
const START: Source = {
  hasSynced: true,
  keys: () => [SERVERS_KEY],
  start: (enqueue) => {
    enqueue(SERVERS_KEY, 'high')
    return () => {}
  },
}

/**
 * Makes the controller that ensures what the NATS servers need to let tenants in. It also makes the Secrets without which no
 * server starts.
 *
 * @returns the controller with its caches, and `look`, which enqueues its key.
 */
export function createNatsServersController(
  o: NatsServersOptions,
): ControllerSet & { readonly look: () => void } {
  const { tenancy, namespace, clock, log } = o
  // One cache for each name: the operator may not list the others of its namespace.
  const caches = tenancy.secretNames.map(
    (name) =>
      new Cache({
        openReflector: o.openReflector,
        resource: SECRET,
        namespace,
        fieldSelector: `metadata.name=${name}`,
        // The data of the Secrets is read when it is needed.
        trim: ({ apiVersion, kind, metadata }) => ({ apiVersion, kind, metadata }),
        clock,
        log,
      }),
  )
  let issuer: string | undefined
  const controller = new Controller({
    name: 'nats-servers',
    sources: [
      START,
      ...caches.map((cache) => referenceSource({ cache, toKeys: () => [SERVERS_KEY] })),
      ...(o.sources ?? []),
    ],
    reconcile: async ({ signal }) => {
      const { issuer: now, requeueAfterMs } = await tenancy.ensureServers({ signal })
      if (issuer !== now) {
        issuer = now
        o.onIssuerChanged()
      }
      return { requeueAfterMs }
    },
    clock,
    log,
    metrics: o.metrics,
  })
  return {
    caches,
    controllers: [closingAfter(controller, tenancy)],
    look: () => controller.enqueue(SERVERS_KEY),
  }
}

/** Wraps the controller so that the keeper is closed once the controller has stopped. */
function closingAfter(controller: Controller, keeper: ServersKeeper): ManagedController {
  return {
    name: controller.name,
    start: () => controller.start(),
    stop: () => controller.stop(),
    abort: () => controller.abort(),
    drained: async () => {
      await controller.drained()
      await keeper.close?.()
    },
  }
}
