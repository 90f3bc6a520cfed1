// A thread that attacks a server with generators of all classes at once.
import { setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { ATTACK_CLASSES, type AttackClass, attackOnce } from '../attacks/attack-classes.ts'
import type { Target } from '../serving.ts'

/** Orders that the thread starts with. */
export interface AttackOrders {
  readonly target: Target
  /** Seed of the first attack of each class; the next ones have the seeds after it. */
  readonly seed: number
  readonly minutes: number
}

/** The thread's report when it is done. */
export interface AttackReport {
  readonly sent: Readonly<Record<string, number>>
  /** Attacks that did not end as they should, each kind once, and how often. */
  readonly problems: Readonly<Record<string, number>>
}

/** Attacks of each class at the same time. */
const AT_A_TIME = 2
/** Priority of this thread alone: attackers on other machines would leave these processors to the server. */
const NICE = 5

async function attackAll({ target, seed, minutes }: AttackOrders): Promise<AttackReport> {
  const endsAt = performance.now() + minutes * 60_000
  const sent: Record<string, number> = {}
  const problems: Record<string, number> = {}
  const attack = async (kind: AttackClass): Promise<void> => {
    while (performance.now() < endsAt) {
      const count = sent[kind] ?? 0
      sent[kind] = count + 1
      const problem = await attackOnce(kind, target, seed + count)
      if (problem === undefined) continue
      const what = `${kind}: ${problem.replace(/^seed \d+: /, '')}`
      problems[what] = (problems[what] ?? 0) + 1
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of a thread, not of a page
      if (problems[what] === 1) parentPort?.postMessage({ problem: `${kind}, ${problem}` })
    }
  }
  await Promise.all(
    ATTACK_CLASSES.flatMap((kind) => Array.from({ length: AT_A_TIME }, () => attack(kind))),
  )
  return { sent, problems }
}

if (parentPort !== null) {
  setPriority(0, NICE)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion, unicorn/require-post-message-target-origin -- of a thread, not of a page
  parentPort.postMessage({ report: await attackAll(workerData as AttackOrders) })
}
