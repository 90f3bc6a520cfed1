import type { Deployment, Stored } from '@tutti/kube'
import { oneLine } from '../status/render-nodes.ts'
import { type Rollout, rolloutOf, type SeenPods } from './rollout.ts'

/** What there is at one moment. */
export interface RolloutsSeen extends SeenPods {
  readonly deployments: readonly Stored<Deployment>[]
}

/** A Deployment whose pods are being replaced. */
export interface Restarted {
  readonly uid: string
  /** `Model yolo` say. */
  readonly title: string
}

export interface FollowOptions {
  read(): Promise<RolloutsSeen>
  /** Resolves when it is time to look again; false if there is no time left. */
  wait(): Promise<boolean>
  out(line: string): void
}

/**
 * Looks at Deployments until the pods of all are replaced, or one cannot go on. Each change is a line.
 *
 * @returns what went wrong, a line each; none if all is well.
 */
export async function followRollouts(
  restarted: readonly Restarted[],
  o: FollowOptions,
): Promise<readonly string[]> {
  const told = new Map<string, string>()
  const open = new Map(restarted.map((one) => [one.uid, one.title]))
  const failures: string[] = []
  for (;;) {
    const seen = await o.read()
    for (const [uid, title] of open) {
      const rollout = lookFor(uid, seen)
      const line = `${title}: ${toText(rollout)}`
      if (rollout.state === 'failed') failures.push(line)
      else if (told.get(uid) !== line) o.out(line)
      told.set(uid, line)
      if (rollout.state !== 'going') open.delete(uid)
    }
    if (open.size === 0) return failures
    if (!(await o.wait())) {
      return [...failures, ...[...open.keys()].map((uid) => `not in time: ${told.get(uid)}`)]
    }
  }
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
