import type { Clock, Logger } from '@tutti/chassis'
import { SECRET } from '@tutti/kube'
import type { NatsTenancy } from '../../nats/nats-tenancy.ts'
import { Cache, type OpenReflector } from '../../runtime/cache.ts'
import { Controller } from '../../runtime/controller.ts'
import type { RuntimeMetrics } from '../../runtime/metrics.ts'
import { referenceSource, type Source } from '../../runtime/sources.ts'
import type { ControllerSet } from '../context.ts'

export interface NatsServersOptions {
  readonly tenancy: Pick<NatsTenancy, 'secretNames' | 'ensureServers'>
  readonly openReflector: OpenReflector
  /** The operator's. */
  readonly namespace: string
  /**
   * Credentials are signed by another key from now on: every namespace has to be looked at. Called for the first key, too: a
   * rotation that was asked for before the start may have come after a namespace was looked at.
   */
  readonly onIssuerChanged: () => void
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: RuntimeMetrics
}

/** There is one set of servers, and so one key. */
const KEY = 'servers'

/** Looks at the servers once at the start, when there is no object yet that could say so. */
const START: Source = {
  hasSynced: true,
  keys: () => [KEY],
  start: (enqueue) => {
    enqueue(KEY, 'high')
    return () => {}
  },
}

/** Keeps what the servers of NATS need to let tenants in: its Secrets are made before any server can start. */
export function createNatsServersController(o: NatsServersOptions): ControllerSet {
  const { tenancy, namespace, clock, log } = o
  // One cache for each name: the operator may not list the others of its namespace.
  const caches = tenancy.secretNames.map(
    (name) =>
      new Cache({
        openReflector: o.openReflector,
        resource: SECRET,
        namespace,
        fieldSelector: `metadata.name=${name}`,
        // What they hold is read when it is needed.
        trim: ({ apiVersion, kind, metadata }) => ({ apiVersion, kind, metadata }),
        clock,
        log,
      }),
  )
  let issuer: string | undefined
  const controller = new Controller({
    name: 'nats-servers',
    sources: [START, ...caches.map((cache) => referenceSource({ cache, toKeys: () => [KEY] }))],
    reconcile: async ({ signal }) => {
      const now = await tenancy.ensureServers({ signal })
      if (issuer !== now) {
        issuer = now
        o.onIssuerChanged()
      }
      return {}
    },
    clock,
    log,
    metrics: o.metrics,
  })
  return { caches, controllers: [controller] }
}
