import { type Deployment, KubeError, type Stored } from '@tutti/kube'
import { oneLine } from '../status/render-nodes.ts'
import { type Rollout, rolloutOf, type SeenPods } from './rollout.ts'

/** Deployments and pods that there are at one moment. */
export interface RolloutsSeen extends SeenPods {
  readonly deployments: readonly Stored<Deployment>[]
}

/** A Deployment whose pods are being replaced. */
export interface Restarted {
  readonly uid: string
  /** `Model yolo` say. */
  readonly title: string
}

/** How it ended. */
export interface Ended extends Restarted {
  /** `failed`: it was refused, cannot go on, or is no longer seen. `late`: there was no time left. */
  readonly state: 'done' | 'failed' | 'late'
  /** `restarted, 2 pods` say, what it waited for, or why it failed. */
  readonly message: string
}

export interface FollowOptions {
  read(): Promise<RolloutsSeen>
  /** Resolves when it is time to look again; false if there is no time left. */
  wait(): Promise<boolean>
  out(line: string): void
}

/**
 * Looks at Deployments until the pods of each are replaced or cannot be, or the API server does not say. Each change is a line.
 *
 * @returns how each ended, the first one first.
 */
export async function followRollouts(
  restarted: readonly Restarted[],
  o: FollowOptions,
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

/** @throws what is no answer of an API server. */
export function toRefusal(error: unknown): KubeError {
  if (error instanceof KubeError) return error
  throw error
}

/** Says what went wrong, in a line; undefined if all is well. */
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
