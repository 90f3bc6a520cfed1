import { ACCEPTED_LABEL } from '@tutti/api'
import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type ClusterAccess,
  CONTROLLER_REVISION,
  createClient,
  createReflector,
  createTransport,
  type InClusterEnv,
  inClusterAccess,
  type KubeObject,
  type ReflectorOptions,
  SECRET,
} from '@tutti/kube'
import type { WatchRevisions } from './accepted-link.ts'
import type { WatchSecret } from './edge-secret.ts'

/**
 * Finds the API server of the pod's cluster.
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

/** The API server and the namespace of a watch. */
export interface WatchPlace {
  readonly access: ClusterAccess
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
}

/** Makes a watch of the ControllerRevisions of accepted resources in one namespace. */
export function watchRevisions(place: WatchPlace): WatchRevisions {
  return (listener) =>
    watch(place, { resource: CONTROLLER_REVISION, labelSelector: ACCEPTED_LABEL, ...listener })
}

/** Makes a watch of one Secret of a namespace. The right to read that Secret is enough. */
export function watchSecret(place: WatchPlace, name: string): WatchSecret {
  const fieldSelector = `metadata.name=${name}`
  return (listener) => watch(place, { resource: SECRET, fieldSelector, ...listener })
}

function watch<T extends KubeObject>(
  { access, namespace, clock, log }: WatchPlace,
  watched: Omit<ReflectorOptions<T>, 'client' | 'namespace' | 'clock' | 'log'>,
): { close(): Promise<void> } {
  const transport = createTransport(access, { clock, log, userAgent: 'tutti-router' })
  const client = createClient(transport)
  const reflector = createReflector<T>({ ...watched, client, namespace, clock, log })
  return {
    close: async () => {
      await reflector.close()
      await transport.close()
    },
  }
}
