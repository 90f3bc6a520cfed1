import type { Clock, Logger } from '@tutti/chassis'
import type { InClusterEnv } from '@tutti/kube'
import { AcceptedLink, type WatchRevisions } from './accepted-link.ts'
import type { AcceptedSet } from './accepted-set.ts'
import { EdgeSecret, type WatchSecret } from './edge-secret.ts'
import { clusterOf, watchRevisions, watchSecret } from './watch-objects.ts'

/** The watches of a router at the API server. Each is undefined if the flags do not ask for it. */
export interface Watches {
  readonly accepted: AcceptedLink | undefined
  readonly edge: EdgeSecret | undefined
  /** Lists what has not been read yet, in texts for health. */
  readonly causes: () => readonly string[]
}

/**
 * Opens the watches that the flags ask for.
 *
 * @param o.opened - closes the watches.
 * @throws ServeError SETTING_INVALID outside of a cluster.
 */
export function openWatches(o: {
  readonly flags: {
    readonly kubernetes: boolean
    readonly 'repository-name': string
    readonly 'edge-secret-name'?: string | undefined
  }
  readonly env: InClusterEnv
  readonly view: { setAccepted(accepted: AcceptedSet): void }
  /** Watch to use instead of the API server of the pod. */
  readonly watch?: WatchRevisions | undefined
  readonly watchSecret?: WatchSecret | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly opened: AsyncDisposableStack
}): Watches {
  const { flags, env, view, clock, log, opened } = o
  const { 'edge-secret-name': secret, 'repository-name': namespace } = flags
  const place = () => ({ access: clusterOf(env, clock), namespace, clock, log })
  const watch = () => o.watch ?? watchRevisions(place())
  const accepted = flags.kubernetes ? new AcceptedLink({ view, watch: watch(), log }) : undefined
  opened.defer(async () => accepted?.close())
  const watchEdge = (name: string) => o.watchSecret ?? watchSecret(place(), name)
  const edge = secret === undefined ? undefined : new EdgeSecret({ watch: watchEdge(secret), log })
  opened.defer(async () => edge?.close())
  return {
    accepted,
    edge,
    causes: () => [
      ...(accepted?.hasSynced === false ? ['the accepted revisions have not been read yet'] : []),
      ...(edge?.hasSynced === false ? ['the hosts that lead here have not been read yet'] : []),
    ],
  }
}
