import type { ServedModel, StartProgress } from '@tutti/api'
import type { ServeError } from '@tutti/errors'
import type { Stored } from '@tutti/kube'
import { areContainersReady, isAlive, type PodState } from '../../pods/pod-state.ts'
import { TEMPLATE_ANNOTATION } from '../../resources/step-template.ts'

/** A pod of a Model, and its answer about the model. */
export interface ModelPod {
  readonly pod: Stored<PodState>
  /** True if the pod was made from the newest template. */
  readonly isCurrent: boolean
  /** Answer about the model; absent if the pod was not asked, did not answer, or does not know the model yet. */
  readonly model?: ServedModel
  /** Progress of the start, as the pod tells it; absent if it is over, or the pod does not say it. */
  readonly progress?: StartProgress
  /** Error if the pod did not answer. */
  readonly error?: ServeError
}

/** A version of a model as a pod serves it. */
export interface VersionRevision {
  readonly version: number
  readonly revision: string
}

/** True if a pod was made from the template with this digest; false for an undefined digest. */
export function isOfTemplate(pod: PodState, digest: string | undefined): boolean {
  return digest !== undefined && pod.metadata.annotations?.[TEMPLATE_ANNOTATION] === digest
}

/** Lists what a pod can execute now, ascending by version. */
export function readyVersionsOf({ model }: Pick<ModelPod, 'model'>): readonly VersionRevision[] {
  return (model?.versions ?? [])
    .filter(({ state }) => state === 'READY')
    .map(({ version, revision }) => ({ version, revision }))
    .toSorted((one, other) => one.version - other.version)
}

/** Returns the pods of the newest template that are neither terminating nor ended. */
export function currentPods(pods: readonly ModelPod[]): readonly ModelPod[] {
  return pods.filter(({ pod, isCurrent }) => isCurrent && isAlive(pod))
}

/** True if the containers of a pod are ready and it has a ready version of the model. */
export function canServe(pod: ModelPod): boolean {
  return areContainersReady(pod.pod) && readyVersionsOf(pod).length > 0
}
