import { SLEEP_ANNOTATION, type SleepMark, toMilliseconds } from '@tutti/api'
import { type Client, CONTROLLER_REVISION, keyOf } from '@tutti/kube'
import { LOAD } from '../../resources/model-container.ts'
import { maySleep } from '../../resources/model-scaling.ts'
import { FIELD_MANAGER } from '../../runtime/children.ts'
import { cutText } from '../../runtime/conditions.ts'
import type { Revision } from '../accepted-revisions.ts'
import { isObserved, podCountsOf } from '../deployment-state.ts'
import { findStart } from './model-start.ts'
import type { ModelWorld } from './model-world.ts'

const LONGEST_START = 1000
const NO_PODS = { wanted: 0, available: 0 } as const

/**
 * Tells routers, in the newest accepted revision, that requests wait while the Model has no pods, for how long, and how far the
 * start of a pod is. It writes only what has changed.
 *
 * @throws KubeError if the revision cannot be written.
 */
export async function markSleep(
  world: ModelWorld,
  o: {
    readonly client: Client
    readonly newest: Revision | undefined
    readonly signal: AbortSignal
  },
): Promise<void> {
  const { client, newest, signal } = o
  if (newest === undefined) return
  const { uid, annotations } = newest.metadata
  const mark = toMark(world, annotations?.[SLEEP_ANNOTATION] !== undefined)
  const text = mark && JSON.stringify(mark)
  if (annotations?.[SLEEP_ANNOTATION] === text) return
  // The uid holds it to the object that was seen.
  const patch = { metadata: { uid, annotations: { [SLEEP_ANNOTATION]: text ?? null } } }
  const options = { fieldManager: FIELD_MANAGER, signal, patch }
  await client.mergePatch(CONTROLLER_REVISION, keyOf(newest), options)
}

/**
 * Builds the mark; undefined if no request waits, as the Model always has pods, or nothing may change them. A Model that may sleep
 * no longer keeps its mark until a pod serves: requests that wait for that pod would fail.
 */
function toMark(world: ModelWorld, isMarked: boolean): SleepMark | undefined {
  const { scaling, spec, deployment } = world
  const { wanted, available } = deployment ? podCountsOf(deployment) : NO_PODS
  if (!maySleep(scaling) && !(isMarked && isAwaited(world))) return undefined
  if (wanted === 0 && isLeftAlone(world)) return undefined
  const loadMs = toMilliseconds(spec?.timeouts?.load ?? LOAD)
  return { loadMs, ...(wanted > 0 && available === 0 && { start: toStartText(world) }) }
}

function toStartText(world: ModelWorld): string {
  const start = findStart(world)
  const text = start ? `pod "${start.pod}" waits for ${start.message}` : 'a pod has been asked for'
  return cutText(text, LONGEST_START)
}

/** True if pods are wanted and none serves. Counts from before the last change of the Deployment may be of pods that are gone. */
function isAwaited({ deployment }: ModelWorld): boolean {
  if (deployment === undefined) return false
  const { wanted, available } = podCountsOf(deployment)
  return wanted > 0 && (available === 0 || !isObserved(deployment))
}

/** True if the operator starts no pod now. */
function isLeftAlone({ spec, refusal, hold }: ModelWorld): boolean {
  return spec === undefined || spec.paused === true || refusal !== undefined || hold !== undefined
}
