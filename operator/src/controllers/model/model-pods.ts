import type { ServedModel } from '@tutti/api'
import type { ServeError } from '@tutti/errors'
import type { Stored } from '@tutti/kube'
import { areContainersReady, isAlive, type PodState } from '../../pods/pod-state.ts'
import { TEMPLATE_ANNOTATION } from '../../resources/model-deployment.ts'

/** A pod of a Model, and what it said. */
export interface ModelPod {
  readonly pod: Stored<PodState>
  /** True if it was made from the template that is wanted now. */
  readonly isCurrent: boolean
  /** The pod's answer about the model; undefined if it was not asked, does not answer, or does not know the model yet. */
  readonly model?: ServedModel
  /** Why it did not answer. */
  readonly error?: ServeError
}

/** A version of a model as a pod serves it. */
export interface VersionRevision {
  readonly version: number
  readonly revision: string
}

/** True for a pod of the template with this digest. */
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

/** Pods of the newest template that neither end nor have ended. */
export function currentPods(pods: readonly ModelPod[]): readonly ModelPod[] {
  return pods.filter(({ pod, isCurrent }) => isCurrent && isAlive(pod))
}

/** True for a pod whose processes are ready and that has a version to serve. */
export function canServe(pod: ModelPod): boolean {
  return areContainersReady(pod.pod) && readyVersionsOf(pod).length > 0
}
