import { isFetchContainer, isOfBuiltins, isOfRouter, isVerifyContainer } from '@tutti/api'
import type { ContainerStatus, Pod, Stored } from '@tutti/kube'
import { modelsOfPods } from '../status/read-state.ts'
import type { Target } from '../targets.ts'

/** One run of a container, from its start to its end, whose lines are read. */
export interface LogSource {
  readonly namespace: string
  readonly pod: string
  readonly container: string
  /** Key of the run: another run of the same container has other lines and another key. */
  readonly key: string
  /** True if the run has ended, so that no further lines come. */
  readonly isOver: boolean
}

/** True for containers of ours. What others add to pods logs in ways of its own. */
const isOurs = (name: string): boolean =>
  name === 'main' || isFetchContainer(name) || isVerifyContainer(name)

/**
 * Lists the containers of a target that have lines. Pure.
 *
 * @param o.withRouters - whether the containers of routers are added.
 * @param o.isPrevious - whether the runs before the present ones are meant.
 */
export function sourcesOf(
  pods: readonly Stored<Pod>[],
  { models, isRouter, hasBuiltins }: Pick<Target, 'models' | 'isRouter' | 'hasBuiltins'>,
  o: { readonly withRouters: boolean; readonly isPrevious: boolean },
): readonly LogSource[] {
  const names = new Set(models.map(({ metadata }) => metadata.name))
  const isWanted = (pod: Stored<Pod>): boolean => {
    if (isOfRouter(pod)) return isRouter || o.withRouters
    return isOfBuiltins(pod) ? hasBuiltins : modelsOfPods(pod).some((name) => names.has(name))
  }
  return pods.filter(isWanted).flatMap((pod) => lives(pod, o.isPrevious))
}

function lives({ metadata, status }: Stored<Pod>, isPrevious: boolean): readonly LogSource[] {
  const { initContainerStatuses = [], containerStatuses = [] } = status ?? {}
  return [...initContainerStatuses, ...containerStatuses]
    .filter((one) => isOurs(one.name) && hasLines(one, isPrevious))
    .map(({ name, containerID, restartCount, state }) => ({
      namespace: metadata.namespace ?? '',
      pod: metadata.name,
      container: name,
      key: [metadata.uid, name, restartCount, containerID].join(' '),
      isOver: state?.running === undefined,
    }))
}

/** Tells whether a container has lines. Of one that waits to start again, Kubernetes gives those of the life before. */
function hasLines({ state, lastState }: ContainerStatus, isPrevious: boolean): boolean {
  const hasEnded = lastState?.terminated !== undefined
  if (isPrevious) return hasEnded
  return hasEnded || state?.running !== undefined || state?.terminated !== undefined
}
