import { findModelWarnings, type ModelConditionType } from '@tutti/api'
import { toFailureText } from '@tutti/kube'
import { parseArtifactSource } from '../../resources/artifact-source.ts'
import { toDeletion } from '../../runtime/deletion.ts'
import { type ConditionState, isFalse, isTrue, isUnknown } from '../condition-state.ts'
import { findLeftOutTolerance } from '../left-out-tolerance.ts'
import { loadErrorOf } from './model-failure.ts'
import { currentPods, type ModelPod, readyVersionsOf } from './model-pods.ts'
import { asBefore, isLeftAsWas, type ModelWorld } from './model-world.ts'
import { checkReplicasWriter } from './replicas-condition.ts'
import { findLoadMismatch, findMismatch } from './signature-mismatch.ts'

type Check = (world: ModelWorld) => ConditionState

/** Computes the condition Accepted: whether the spec is valid and may be used. */
export const checkAccepted: Check = ({ refusal, modelName, spec, apart }) => {
  if (refusal?.condition === 'Accepted') return isFalse(refusal.reason, refusal.message)
  const warnings = [
    ...(spec === undefined ? [] : findModelWarnings(spec)),
    ...(apart === undefined ? [] : [apart]),
  ]
  return warnings.length === 0
    ? isTrue('Accepted', `clients call it '${modelName}'`)
    : isTrue('AcceptedWithWarnings', warnings.join('; '))
}

/** Computes the condition ArtifactsReady: whether a pod of the newest template has the model's files. */
export const checkArtifacts: Check = (world) => {
  const { refusal, failure, spec } = world
  if (refusal?.condition === 'ArtifactsReady') return isFalse(refusal.reason, refusal.message)
  const pods = currentPods(world.pods)
  if (pods.some(hasArtifacts)) {
    const { kind } = spec === undefined ? {} : parseArtifactSource(spec.storageUri)
    return kind === 'remote' || kind === 'image'
      ? isTrue('Fetched', "a pod has fetched the model's directory")
      : isTrue('Mounted', "a pod has mounted the model's directory")
  }
  if (failure?.reason === 'FetchFailed') return isFalse('FetchFailed', failure.message)
  if (pods.some(isFetching)) return isFalse('Fetching', "a pod is fetching the model's directory")
  return asBefore(world, 'ArtifactsReady') ?? isUnknown('Pending', 'no pod has begun yet')
}

function hasArtifacts({ pod }: ModelPod): boolean {
  const inits = pod.status?.initContainerStatuses ?? []
  const isFetched =
    inits.length > 0 && inits.every(({ state }) => state?.terminated?.exitCode === 0)
  const isRunning = (pod.status?.containerStatuses ?? []).some(
    ({ state, lastState }) =>
      (state?.running ?? state?.terminated ?? lastState?.terminated) !== undefined,
  )
  // Init containers have ended well, and volumes are mounted, before a container runs.
  return isFetched || isRunning
}

function isFetching({ pod }: ModelPod): boolean {
  return (pod.status?.initContainerStatuses ?? []).some(({ state }) => state?.running !== undefined)
}

/** Computes the condition SchemaVerified: whether the model has the inputs and outputs that the Model declares. */
export const checkSchema: Check = (world) => {
  const { spec } = world
  if (spec === undefined) return isUnknown('InvalidSpec', 'the spec cannot be read')
  const mismatch = findSchemaMismatch(world)
  if (mismatch !== undefined) {
    const left = checkLeft(world)
    if (left === undefined) return isFalse('SchemaMismatch', mismatch)
    return asBefore(world, 'SchemaVerified') ?? left
  }
  const pods = currentPods(world.pods)
  if (pods.some((pod) => readyVersionsOf(pod).length > 0 && pod.model?.config !== undefined)) {
    return spec.inputs === undefined && spec.outputs === undefined
      ? isTrue('Discovered', 'inputs and outputs are taken from the model')
      : isTrue('Verified', 'the model has the inputs and outputs that are declared')
  }
  const { failure } = world
  if (failure?.reason === 'ModelLoadFailed') return isUnknown(failure.reason, failure.message)
  return (
    asBefore(world, 'SchemaVerified') ?? isUnknown('Pending', 'no pod has loaded the model yet')
  )
}

/** Tells why pods are of an earlier spec, which this one does not replace; undefined if it does. */
function checkLeft(world: ModelWorld): ConditionState | undefined {
  const { refusal } = world
  const text = 'no pod is made of this spec while'
  if (refusal !== undefined) return isUnknown(refusal.reason, `${text} it is refused`)
  if (!isLeftAsWas(world)) return undefined
  const { hold } = world
  if (hold !== undefined)
    return isUnknown(hold.reason, `no pod is made of this spec: ${hold.message}`)
  return isUnknown('Paused', `${text} spec.paused is true`)
}

function findSchemaMismatch({ spec, pods }: ModelWorld): string | undefined {
  if (spec === undefined) return undefined
  for (const pod of currentPods(pods)) {
    const { model } = pod
    if (model === undefined) continue
    const mismatch = isVerified(spec, pod)
    if (typeof mismatch === 'string') return mismatch
    const loadError = loadErrorOf(model)
    const found = loadError === undefined ? undefined : findLoadMismatch(spec, loadError)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * Returns true if a pod serves what the Model declares, else the difference in one line. A pod that serves nothing yet gives
 * true.
 */
export function isVerified(spec: NonNullable<ModelWorld['spec']>, pod: ModelPod): true | string {
  const config = pod.model?.config
  if (config === undefined || readyVersionsOf(pod).length === 0) return true
  return findMismatch(spec, config) ?? true
}

/** Computes the condition Degraded: whether something is wrong, even if requests are still answered. */
export const checkDegraded: Check = (world) => {
  const { refusal, failure } = world
  if (refusal !== undefined) return isTrue(refusal.reason, refusal.message)
  const blocked = checkChildren(world) ?? checkTolerance(world)
  if (blocked !== undefined) return blocked
  if (failure !== undefined) return isTrue(failure.reason, toFailureText(failure))
  const { status, reason, message } = checkSchema(world)
  if (status === 'False') return isTrue(reason, message)
  return checkReplicasWriter(world) ?? isFalse('AsExpected', 'nothing is wrong')
}

/** Finds the first problem of a child that does not pass by itself, as a condition; undefined if there is none. */
export function checkChildren({
  outcomes,
}: Pick<ModelWorld, 'outcomes'>): ConditionState | undefined {
  for (const outcome of outcomes) {
    const { kind } = outcome.resource
    if (outcome.result === 'nameConflict') return isTrue('ObjectConflict', outcome.message)
    if (outcome.result === 'refused') return isTrue('Refused', `${kind}: ${outcome.error.message}`)
    const deletion = outcome.result === 'terminating' ? toDeletion(outcome) : undefined
    if (deletion?.isPassing === false) return isTrue('Terminating', deletion.message)
    if (outcome.result !== 'failed') continue
    const { error } = outcome
    return isTrue('ApplyFailed', `${kind}: ${error instanceof Error ? error.message : 'unknown'}`)
  }
  return undefined
}

/** Finds a child whose deletion ends by itself, after which it is created again, as a condition; undefined if there is none. */
export function findPassing({
  outcomes,
}: Pick<ModelWorld, 'outcomes'>): ConditionState | undefined {
  for (const outcome of outcomes) {
    const deletion = outcome.result === 'terminating' ? toDeletion(outcome) : undefined
    if (deletion?.isPassing === true) return isTrue('Terminating', deletion.message)
  }
  return undefined
}

/** Checks that the HPA has the tolerance of the spec. */
function checkTolerance({ spec, outcomes }: ModelWorld): ConditionState | undefined {
  const message = findLeftOutTolerance(spec?.scaling?.behavior, outcomes)
  return message === undefined ? undefined : isTrue('FieldLeftOut', message)
}

export type ConditionStates = Readonly<Record<ModelConditionType, ConditionState>>
