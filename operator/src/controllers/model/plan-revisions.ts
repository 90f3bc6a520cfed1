import type { AcceptedModel } from '@tutti/api'
import { acceptedOf, type Revision, toWanted, type WantedRevision } from '../accepted-revisions.ts'
import { canServe, type ModelPod, readyVersionsOf, type VersionRevision } from './model-pods.ts'

export interface WantedInput {
  readonly owner: AcceptedModel['resource']
  readonly modelName: string
  readonly pods: readonly ModelPod[]
  /** Whether what a pod serves is what the Model declares. */
  readonly isVerified: (pod: ModelPod) => boolean
}

/** Plans what is to be accepted: what pods of the newest template serve and the Model declares, each content once. Pure. */
export function planWanted(input: WantedInput): readonly WantedRevision[] {
  const wanted = new Map<string, WantedRevision>()
  for (const pod of input.pods) {
    if (!pod.isCurrent || !canServe(pod) || !input.isVerified(pod)) continue
    const accepted = toAccepted(input, pod)
    if (accepted === undefined) continue
    // The generation that had it first is no part of it: an edit that changes nothing of it needs no new one.
    const one = toWanted(accepted, { ignoresGeneration: true })
    wanted.set(one.name, one)
  }
  return [...wanted.values()]
}

function toAccepted({ owner, modelName }: WantedInput, pod: ModelPod): AcceptedModel | undefined {
  const config = pod.model?.config
  if (config === undefined) return undefined
  const own = new Map(pod.model?.versions.map((one) => [one.version, one.own?.config]))
  const versions = readyVersionsOf(pod).map((one) => {
    const other = own.get(one.version)
    return other === undefined ? one : { ...one, config: other }
  })
  return { kind: 'Model', modelName, resource: { ...owner }, config, versions }
}

/**
 * Finds what can be forgotten: beyond the history, what no pod serves. While a pod that may serve anything has not answered,
 * nothing is known to be out of use. Pure.
 *
 * @param revisions - the newest first.
 * @param history - so many are kept although no pod serves them, so that a rollback finds them.
 */
export function findUnused(
  pods: readonly ModelPod[],
  revisions: readonly Revision[],
  history: number,
): readonly Revision[] {
  if (pods.some((pod) => pod.model === undefined && mayServe(pod))) return []
  const served = new Set(pods.flatMap(readyVersionsOf).map(({ revision }) => revision))
  return revisions
    .slice(history)
    .filter((one) => versionsOf(one).every(({ revision }) => !served.has(revision)))
}

function mayServe({ pod }: ModelPod): boolean {
  return (pod.status?.containerStatuses ?? []).some(({ state }) => state?.running !== undefined)
}

/** Lists the versions of a Model that a ControllerRevision accepts. One that does not parse accepts none: routers do not use it either. */
export function versionsOf(revision: Revision): readonly VersionRevision[] {
  const accepted = acceptedOf(revision)
  return accepted?.kind === 'Model' ? accepted.versions : []
}
