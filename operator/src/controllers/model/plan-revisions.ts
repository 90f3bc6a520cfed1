import type { ModelSpec } from '@tutti/api'
import type { AcceptedModel } from '@tutti/graph'
import { acceptedOf, type Revision, toWanted, type WantedRevision } from '../accepted-revisions.ts'
import { canServe, type ModelPod, readyVersionsOf, type VersionRevision } from './model-pods.ts'

export interface WantedInput {
  readonly owner: AcceptedModel['resource']
  readonly modelName: string
  /** The parts of the spec that are stored beside what pods serve. */
  readonly spec: Pick<ModelSpec, 'mayRunTwice'>
  readonly pods: readonly ModelPod[]
  /** Function that returns true if a pod serves what the Model declares. */
  readonly isVerified: (pod: ModelPod) => boolean
}

/** Plans the revisions to accept: one for each content that verified pods of the newest template serve. Pure. */
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

function toAccepted(
  { owner, modelName, spec }: WantedInput,
  pod: ModelPod,
): AcceptedModel | undefined {
  const config = pod.model?.config
  if (config === undefined) return undefined
  const own = new Map(pod.model?.versions.map((one) => [one.version, one.own?.config]))
  const versions = readyVersionsOf(pod).map((one) => {
    const other = own.get(one.version)
    return other === undefined ? one : { ...one, config: other }
  })
  const promises = spec.mayRunTwice === true ? ({ mayRunTwice: true } as const) : {}
  return { kind: 'Model', modelName, resource: { ...owner }, config, versions, ...promises }
}

/**
 * Finds the revisions to delete: those that no pod serves, except the newest `history`. It finds none while a running pod has not
 * answered, because that pod may serve any of them. Pure.
 *
 * @param revisions - the owner's revisions, newest first.
 * @param history - number of newest revisions that stay for a rollback.
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

/**
 * Lists the versions of a Model that a ControllerRevision accepts; none if it cannot be parsed, as routers do not use it either.
 */
export function versionsOf(revision: Revision): readonly VersionRevision[] {
  const accepted = acceptedOf(revision)
  return accepted?.kind === 'Model' ? accepted.versions : []
}
