import { maySleep } from '../../resources/model-scaling.ts'
import { checkSchema } from './model-conditions.ts'
import type { ModelWorld } from './model-world.ts'

/** Reasons of a Model whose requests wait in routers, as it has no pods or the first one starts. */
export const HELD_REASONS: ReadonlySet<string> = new Set(['Asleep', 'Waking'])

/**
 * Tells whether requests wait in routers while a Model has no pod that serves: it may sleep, its newest spec has been served once, and
 * nothing is wrong with its pods.
 */
export function areRequestsHeld(world: ModelWorld): boolean {
  const { scaling, accepted, failure } = world
  if (!maySleep(scaling) || accepted.length === 0 || failure !== undefined) return false
  return checkSchema(world).status === 'True'
}
