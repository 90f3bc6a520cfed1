import { isOfRouter } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import { type Client, POD, type Pod, type Stored } from '@tutti/kube'
import { isLeaving } from '../status/pod-node.ts'
import { isPodReady, SERVING_SELECTOR } from '../status/read-state.ts'

/** The pod and the gRPC port of a namespace's router. */
export interface RouterPlace {
  readonly pod: string
  readonly port: number
}

/** Port of gRPC of routers whose pods do not name it. */
const GRPC_PORT = 8001

/** Finds a ready router. @throws ServeError SERVER_NOT_READY if there is none, KubeError if the user may not list pods. */
export async function findRouter(client: Client, namespace: string): Promise<RouterPlace> {
  const { items } = await client.list(POD, { namespace, labelSelector: SERVING_SELECTOR })
  return chooseRouter(items, namespace)
}

/** Chooses the first ready router of a list of pods. @throws ServeError SERVER_NOT_READY if none is ready. */
export function chooseRouter(pods: readonly Stored<Pod>[], namespace: string): RouterPlace {
  const routers = pods.filter(isOfRouter)
  const ready = routers.find((pod) => isPodReady(pod) && !isLeaving(pod))
  if (ready !== undefined) return { pod: ready.metadata.name, port: grpcPortOf(ready) }
  const got =
    routers.length === 0
      ? 'there is no pod of a router'
      : `none of ${routers.length} pod${routers.length === 1 ? '' : 's'} of the router is ready`
  const problem = `${got} in namespace ${namespace}; kubectl tutti status says why`
  throw new ServeError('SERVER_NOT_READY', problem)
}

function grpcPortOf({ spec }: Pod): number {
  const ports = spec.containers.flatMap((container) => container.ports ?? [])
  return ports.find(({ name }) => name === 'grpc')?.containerPort ?? GRPC_PORT
}
