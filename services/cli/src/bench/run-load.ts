import type { Clock } from '@tutti/chassis'
import type { Load } from './load.ts'
import { poissonGaps, runOpenLoop, seededRandom } from './open-loop.ts'
import { Tally } from './tally.ts'
import { runClosedLoop, type Turn } from './turn.ts'

/** A server under load. */
export interface Target {
  /** Sends the one request of the run. */
  readonly send: Turn['send']
}

export interface RunOptions {
  readonly durationMs: number
  readonly warmUpMs: number
  readonly maxInFlight: number
  readonly clock: Clock
  /** Ends the run at once. */
  readonly signal: AbortSignal
}

/** Every run has the same arrivals. */
const SEED = 1
/** Several targets take turns, so that what else the machine does meets all of them alike. */
const TURN_MS = 1000
const LEAST_ROUNDS = 2

/** Puts every target under one load. @returns what came of each, in their order. */
export async function runLoad(
  targets: readonly Target[],
  load: Load,
  o: RunOptions,
): Promise<readonly Tally[]> {
  const runners = targets.map((target) => ({ ...target, run: loop(load, o.maxInFlight) }))
  const tallies = targets.map(() => new Tally())
  const { clock, signal } = o
  for (const { send, run } of runners) {
    if (o.warmUpMs === 0 || signal.aborted) break
    await run({ send, tally: new Tally(), durationMs: o.warmUpMs, clock, signal })
  }
  for (const [index, durationMs] of planTurns(targets.length, o.durationMs)) {
    const [runner, tally] = [runners[index], tallies[index]]
    if (runner === undefined || tally === undefined || signal.aborted) break
    await measure({ send: runner.send, tally, durationMs, clock, signal }, runner.run)
  }
  return tallies
}

/** Whose turn it is, and for how long: A B, B A, A B and so on; one target alone has one turn. */
export function planTurns(
  targets: number,
  durationMs: number,
): readonly (readonly [target: number, durationMs: number])[] {
  if (targets === 1) return [[0, durationMs]]
  const rounds = Math.max(LEAST_ROUNDS, Math.round(durationMs / TURN_MS))
  const order = Array.from({ length: targets }, (_, i) => i)
  return Array.from({ length: rounds }, (_, round) =>
    (round % 2 === 0 ? order : order.toReversed()).map(
      (target) => [target, durationMs / rounds] as const,
    ),
  ).flat()
}

type Run = (turn: Turn) => Promise<void>

function loop(load: Load, maxInFlight: number): Run {
  if (load.kind === 'closed') return (turn) => runClosedLoop(turn, load.concurrency)
  const gapMs = poissonGaps(load.rate, seededRandom(SEED))
  return (turn) => runOpenLoop(turn, { gapMs, rate: load.rate, maxInFlight })
}

async function measure(turn: Turn, run: Run): Promise<void> {
  const { clock, tally, durationMs, signal } = turn
  const startedAt = clock.now()
  const before = performance.eventLoopUtilization()
  await run(turn)
  tally.busyMs += performance.eventLoopUtilization(before).active
  const tookMs = clock.now() - startedAt
  // An open loop may have nothing to do at its end.
  tally.elapsedMs += signal.aborted ? tookMs : Math.max(tookMs, durationMs)
}
