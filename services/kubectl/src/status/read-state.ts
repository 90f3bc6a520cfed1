import { COMPONENT, modelsServedBy } from '@tutti/api'
import { EVENT, type Event, POD, type Pod, type Stored } from '@tutti/kube'
import type { Listed, Reader } from '../cluster.ts'
import {
  ENSEMBLE,
  type EnsembleObject,
  MODEL,
  type ModelObject,
  ROUTER,
  type RouterObject,
} from '../resources.ts'

/** The resources of Tutti in a namespace. A kind that the user may not list is undefined. */
export interface NamespaceState {
  readonly namespace: string
  readonly ensembles: readonly Stored<EnsembleObject>[] | undefined
  readonly models: readonly Stored<ModelObject>[] | undefined
  readonly routers: readonly Stored<RouterObject>[] | undefined
  /** Pods of steps and routers. */
  readonly pods: readonly Stored<Pod>[] | undefined
  /** Events about pods and their claims; empty if all pods are ready. */
  readonly events: readonly Stored<Event>[] | undefined
}

/** Label selector of the pods and Deployments that an operator makes for steps and routers. */
export const SERVING_SELECTOR = `app.kubernetes.io/managed-by=tutti-operator,${COMPONENT} in (step,router)`

/** Reads Tutti's resources, by namespace. @param where - one namespace, or all. */
export async function readState(
  reader: Reader,
  where: Pick<Listed, 'namespace'>,
): Promise<readonly NamespaceState[]> {
  const [ensembles, models, routers, { pods, events }] = await Promise.all([
    reader.list(ENSEMBLE, where),
    reader.list(MODEL, where),
    reader.list(ROUTER, where),
    readPods(reader, where),
  ])
  const all = { ensembles, models, routers, pods, events }
  const namespaces = new Set(
    [ensembles, models, routers].flatMap((objects) => objects?.map(namespaceOf) ?? []),
  )
  if (where.namespace !== undefined) namespaces.add(where.namespace)
  return [...namespaces].toSorted().map((namespace) => {
    const of = <T extends { readonly metadata: { readonly namespace?: string } }>(
      objects: readonly T[] | undefined,
    ) => objects?.filter((object) => namespaceOf(object) === namespace)
    return {
      namespace,
      ensembles: of(all.ensembles),
      models: of(all.models),
      routers: of(all.routers),
      pods: of(all.pods),
      events: of(all.events),
    }
  })
}

/** Reads the pods of steps and routers, and events about them if a pod is not ready. */
export async function readPods(
  reader: Reader,
  where: Pick<Listed, 'namespace'>,
): Promise<Pick<NamespaceState, 'pods' | 'events'>> {
  const pods = await reader.list(POD, { ...where, labelSelector: SERVING_SELECTOR })
  const isEventful = pods?.some((pod) => !isPodReady(pod)) === true
  return { pods, events: isEventful ? await readEvents(reader, where) : [] }
}

/** Kinds whose events tell why a pod waits. */
const KINDS: ReadonlySet<string> = new Set(['Pod', 'PersistentVolumeClaim'])

async function readEvents(
  reader: Reader,
  where: Pick<Listed, 'namespace'>,
): Promise<readonly Stored<Event>[] | undefined> {
  // Those that tell of nothing wrong, too: what was warned of before them is over.
  const events = await reader.list(EVENT, where)
  return events?.filter(({ regarding }) => KINDS.has(regarding?.kind ?? ''))
}

function namespaceOf({ metadata }: { readonly metadata: { readonly namespace?: string } }): string {
  return metadata.namespace ?? ''
}

export function isPodReady({ status }: Pod): boolean {
  return (
    status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true
  )
}

/** Lists the names of the Models that a step's pod, or the pods of its Deployment, serve; none for other objects. */
export function modelsOfPods({ metadata }: Pick<Pod, 'metadata'>): readonly string[] {
  return metadata.labels?.[COMPONENT] === 'step' ? modelsServedBy(metadata.labels) : []
}
