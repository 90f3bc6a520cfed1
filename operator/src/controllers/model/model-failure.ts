import { fetchReasonOf, type ModelSpec } from '@tutti/api'
import { type Event, type Failure, failureOfPod, isProbeThatEnds } from '@tutti/kube'
import { isAlive, mainStatusOf, type PodState, statusOf } from '../../pods/pod-state.ts'
import { failureOfDeployment } from '../deployment-failure.ts'
import { isObserved, podCountsOf } from '../deployment-state.ts'
import type { DeploymentState } from '../kept-objects.ts'
import { withLoadHint } from './load-hint.ts'
import { isOfTemplate, type ModelPod } from './model-pods.ts'

/**
 * Finds the failure to report for the pods of a Model. Pods that live come before those that have ended, then those of the newest
 * template before others. If no pod has failed, it looks at the Deployment. Pure.
 *
 * @param wanted - the Model's spec and the digest of its template. Pods of another template were made from another spec, so their
 *   failures get no hint from this one.
 * @returns undefined if nothing is wrong.
 */
export function findFailure(
  pods: readonly ModelPod[],
  deployment: DeploymentState | undefined,
  wanted: {
    readonly spec?: Pick<ModelSpec, 'storageUri'> | undefined
    readonly template?: string | undefined
    /** Events about late pods and their volume claims. */
    readonly events?: readonly Event[] | undefined
  } = {},
): Failure | undefined {
  // Kubernetes keeps a pod that was evicted, for ever as a rule: it says nothing once others do its work.
  const isReplaced = deployment !== undefined && hasAllPods(deployment)
  const telling = pods.filter(({ pod }) => isAlive(pod) || (hasFailed(pod) && !isReplaced))
  const ordered = telling.toSorted((one, other) => rankOf(one).localeCompare(rankOf(other), 'en'))
  for (const pod of ordered) {
    const failure = failureOf(pod, wanted.events)
    if (failure === undefined) continue
    const storageUri = isOfTemplate(pod.pod, wanted.template) ? wanted.spec?.storageUri : undefined
    return { ...failure, message: withLoadHint(failure.message, storageUri) }
  }
  return failureOfDeployment(deployment)
}

function rankOf({ pod, isCurrent }: ModelPod): string {
  return `${isAlive(pod) ? 0 : 1} ${isCurrent ? 0 : 1} ${pod.metadata.name}`
}

function hasAllPods(deployment: DeploymentState): boolean {
  const { wanted, available } = podCountsOf(deployment)
  return isObserved(deployment) && available >= wanted
}

function hasFailed({ metadata, status }: PodState): boolean {
  return status?.phase === 'Failed' && metadata.deletionTimestamp === undefined
}

function failureOf(modelPod: ModelPod, events: readonly Event[] = []): Failure | undefined {
  const { pod, model } = modelPod
  const main = mainStatusOf(pod)
  // A process that answers loads its model as long as it says no other.
  const isLoading = model !== undefined && main?.state?.running !== undefined
  const telling = isLoading ? events.filter((event) => isProbeThatEnds(event, main)) : events
  return failureOfPod(pod, fetchReasonOf, telling) ?? ofLoad(modelPod)
}

/** Finds the model's own error while the process lives, which may be ready without the model. */
function ofLoad({ pod, model }: ModelPod): Failure | undefined {
  if (model === undefined) return undefined
  const serves = model.versions.some(({ state }) => state === 'READY')
  if (serves && statusOf(pod, 'ContainersReady') === 'True') return undefined
  const error = loadErrorOf(model)
  if (error === undefined) return undefined
  const { name } = pod.metadata
  return { reason: 'ModelLoadFailed', message: error, pod: name, container: 'main' }
}

/** Returns the error with which a model, or the first failed version of it, could not be loaded; undefined if there is none. */
export function loadErrorOf(model: NonNullable<ModelPod['model']>): string | undefined {
  if (model.reason !== '') return model.reason
  const version = model.versions.find(
    ({ state, reason }) => state === 'UNAVAILABLE' && reason !== '',
  )
  return version === undefined ? undefined : `version ${version.version}: ${version.reason}`
}
