import { type Deployment, KubeError, type Stored } from '@tutti/kube'
import { oneLine } from '../status/render-nodes.ts'
import { type Rollout, rolloutOf, type SeenPods } from './rollout.ts'

/** The Deployments and pods of a namespace at one moment. */
export interface RolloutsSeen extends SeenPods {
  readonly deployments: readonly Stored<Deployment>[]
}

/** A Deployment whose pods are being replaced. */
export interface Restarted {
  readonly uid: string
  /** Kind and name, e.g. `Model yolo`. */
  readonly title: string
}

/** The end of a restart. */
export interface Ended extends Restarted {
  /** State at the end. `failed`: the restart was refused, cannot go on or cannot be watched. `late`: the time was over. */
  readonly state: 'done' | 'failed' | 'late'
  /** Text for people: the result, such as `restarted, 2 pods`, or the reason of the delay or failure. */
  readonly message: string
}

export interface FollowRolloutsOptions {
  read(): Promise<RolloutsSeen>
  /** Waits until the next look. @returns false if there is no time left. */
  wait(): Promise<boolean>
  out(line: string): void
}

/**
 * Watches Deployments until each has replaced its pods or has failed, or until the API server does not answer. Each change prints
 * a line.
 *
 * @returns the end of each, in the order in which they ended.
 */
export async function followRollouts(
  restarted: readonly Restarted[],
  o: FollowRolloutsOptions,
): Promise<readonly Ended[]> {
  const told = new Map<Restarted, string>()
  const open = new Set(restarted)
  const ended: Ended[] = []
  const rest = (state: Ended['state'], textOf: (one: Restarted) => string): readonly Ended[] => [
    ...ended,
    ...[...open].map((one) => ({ ...one, state, message: textOf(one) })),
  ]
  while (open.size > 0) {
    const seen = await o.read().catch(toRefusal)
    if (seen instanceof KubeError) return rest('failed', () => `not seen any more: ${seen.message}`)
    for (const one of open) {
      const rollout = lookFor(one.uid, seen)
      const { state } = rollout
      const message = toText(rollout)
      if (state !== 'failed' && told.get(one) !== message) o.out(`${one.title}: ${message}`)
      told.set(one, message)
      if (state === 'going') continue
      open.delete(one)
      ended.push({ ...one, state, message })
    }
    if (open.size > 0 && !(await o.wait())) return rest('late', (one) => told.get(one) ?? '')
  }
  return ended
}

/** Narrows an error to a KubeError. @throws any other error. */
export function toRefusal(error: unknown): KubeError {
  if (error instanceof KubeError) return error
  throw error
}

/** Formats the failure of a restart as a line; undefined for a success. */
export function failureOf({ title, state, message }: Ended): string | undefined {
  if (state === 'done') return undefined
  return state === 'late' ? `not in time: ${title}: ${message}` : `${title}: ${message}`
}

function lookFor(uid: string, seen: RolloutsSeen): Rollout {
  const found = seen.deployments.find(({ metadata }) => metadata.uid === uid)
  if (found === undefined) return { state: 'failed', text: 'its Deployment was deleted' }
  const rollout = rolloutOf(found, seen)
  if (rollout.state !== 'failed') return rollout
  const { progressDeadlineSeconds = 600 } = found.spec
  return { ...rollout, text: `no progress within ${progressDeadlineSeconds} s, ${rollout.text}` }
}

function toText({ text, cause }: Rollout): string {
  return cause === undefined ? text : `${text}; ${cause.reason}: ${oneLine(cause.message)}`
}
