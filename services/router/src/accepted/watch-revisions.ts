import type { Clock, Logger } from '@tutti/chassis'
import { ACCEPTED_LABEL } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import {
  type ClusterAccess,
  CONTROLLER_REVISION,
  type ControllerRevision,
  createClient,
  createReflector,
  createTransport,
  type InClusterEnv,
  inClusterAccess,
} from '@tutti/kube'
import type { WatchRevisions } from './accepted-link.ts'

/**
 * The API server of the pod's cluster.
 *
 * @throws ServeError SETTING_INVALID if the environment names none.
 */
export function clusterOf(env: InClusterEnv, clock: Clock): ClusterAccess {
  try {
    return inClusterAccess(env, clock)
  } catch (cause) {
    const { message } = ServeError.from(cause)
    throw new ServeError('SETTING_INVALID', `--kubernetes: ${message}`, { cause })
  }
}

/** Watches what was accepted in one namespace. */
export function watchRevisions(o: {
  readonly access: ClusterAccess
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
}): WatchRevisions {
  return ({ onEvent, onSynced }) => {
    const { access, namespace, clock, log } = o
    const transport = createTransport(access, { clock, log, userAgent: 'tutti-router' })
    const reflector = createReflector<ControllerRevision>({
      client: createClient(transport),
      resource: CONTROLLER_REVISION,
      namespace,
      labelSelector: ACCEPTED_LABEL,
      clock,
      log,
      onEvent,
      onSynced,
    })
    return {
      close: async () => {
        await reflector.close()
        await transport.close()
      },
    }
  }
}
