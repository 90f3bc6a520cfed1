import { SLEEP_ANNOTATION, type SleepMark, toMilliseconds } from '@tutti/api'
import { type Client, CONTROLLER_REVISION, keyOf } from '@tutti/kube'
import { LOAD } from '../../resources/model-container.ts'
import { maySleep } from '../../resources/model-scaling.ts'
import { FIELD_MANAGER } from '../../runtime/children.ts'
import { cutText } from '../../runtime/conditions.ts'
import type { Revision } from '../accepted-revisions.ts'
import { podCountsOf } from '../deployment-state.ts'
import { findStart } from './model-start.ts'
import type { ModelWorld } from './model-world.ts'

const LONGEST_START = 1000

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
  const mark = toMark(world)
  const text = mark && JSON.stringify(mark)
  const { uid, annotations } = newest.metadata
  if (annotations?.[SLEEP_ANNOTATION] === text) return
  // The uid holds it to the object that was seen.
  const patch = { metadata: { uid, annotations: { [SLEEP_ANNOTATION]: text ?? null } } }
  const options = { fieldManager: FIELD_MANAGER, signal, patch }
  await client.mergePatch(CONTROLLER_REVISION, keyOf(newest), options)
}

/** Builds the mark; undefined if no request waits, as the Model always has pods, or nothing may change them. */
function toMark(world: ModelWorld): SleepMark | undefined {
  const { scaling, spec, deployment, hold } = world
  if (spec === undefined || !maySleep(scaling)) return undefined
  const { wanted, available } =
    deployment === undefined ? { wanted: 0, available: 0 } : podCountsOf(deployment)
  if (wanted === 0 && (spec.paused === true || hold !== undefined)) return undefined
  const loadMs = toMilliseconds(spec.timeouts?.load ?? LOAD)
  if (wanted === 0 || available > 0) return { loadMs }
  const start = findStart(world)
  const text = start ? `pod "${start.pod}" waits for ${start.message}` : 'a pod has been asked for'
  return { loadMs, start: cutText(text, LONGEST_START) }
}
