import { setMaxListeners } from 'node:events'
import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { BenchLoad } from './load.ts'
import { poissonGaps, runOpenLoop, seededRandom } from './open-loop.ts'
import { Tally } from './tally.ts'
import { type BenchTurn, runClosedLoop } from './turn.ts'

/** A server under load. */
export interface BenchTarget {
  /** Sends the one request of the run. */
  readonly send: BenchTurn['send']
}

export interface RunOptions {
  readonly durationMs: number
  readonly warmUpMs: number
  readonly maxInFlight: number
  /** Milliseconds of the wait for the last answers of a turn, which is then aborted. */
  readonly lastAnswersMs: number
  readonly clock: Clock
  /** Signal that ends the run at once. */
  readonly signal: AbortSignal
}

/** Seed of the arrivals: every run has the same. */
const SEED = 1
/** Several targets take turns, so that what else the machine does meets all of them alike. */
const TURN_MS = 1000
const LEAST_ROUNDS = 2

/** Puts every target under one load, by turns after a warm-up. @returns the counts of each target, in order. */
export async function runLoad(
  targets: readonly BenchTarget[],
  load: BenchLoad,
  o: RunOptions,
): Promise<readonly Tally[]> {
  const runners = targets.map((target) => ({ ...target, run: loop(load, o.maxInFlight) }))
  const tallies = targets.map(() => new Tally())
  const { clock, signal } = o
  const { lastAnswersMs } = o
  for (const { send, run } of runners) {
    if (o.warmUpMs === 0 || signal.aborted) break
    const turn = { send, tally: new Tally(), durationMs: o.warmUpMs, clock, signal }
    await runBounded(turn, run, lastAnswersMs)
  }
  // A target that no longer answers has no further turns: each would take as long.
  const silent = new Set<number>()
  for (const [index, durationMs] of planTurns(targets.length, o.durationMs)) {
    const [runner, tally] = [runners[index], tallies[index]]
    if (runner === undefined || tally === undefined || signal.aborted) break
    if (silent.has(index)) continue
    const turn = { send: runner.send, tally, durationMs, clock, signal }
    if (!(await measure(turn, runner.run, lastAnswersMs))) silent.add(index)
  }
  return tallies
}

/** Plans the turns of targets and their milliseconds, in the order A B, B A, A B and so on. A single target has one turn. */
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

type Run = (turn: BenchTurn) => Promise<void>

function loop(load: BenchLoad, maxInFlight: number): Run {
  if (load.kind === 'closed') return (turn) => runClosedLoop(turn, load.concurrency)
  const gapMs = poissonGaps(load.rate, seededRandom(SEED))
  return (turn) => runOpenLoop(turn, { gapMs, rate: load.rate, maxInFlight })
}

/** @returns false if the server left requests without an answer. */
async function measure(turn: BenchTurn, run: Run, lastAnswersMs: number): Promise<boolean> {
  const { clock, tally, durationMs, signal } = turn
  const startedAt = clock.now()
  const before = performance.eventLoopUtilization()
  const isAnswered = await runBounded(turn, run, lastAnswersMs)
  tally.busyMs += performance.eventLoopUtilization(before).active
  const tookMs = clock.now() - startedAt
  // An open loop may have nothing to do at its end.
  tally.elapsedMs += signal.aborted
    ? tookMs
    : isAnswered
      ? Math.max(tookMs, durationMs)
      : durationMs
  return isAnswered
}

/** Ends a turn whose last answers do not come. @returns false if it did. */
async function runBounded(turn: BenchTurn, run: Run, lastAnswersMs: number): Promise<boolean> {
  const { clock, durationMs, signal } = turn
  const stop = new AbortController()
  // Each request in flight listens.
  setMaxListeners(0, stop.signal)
  const end = (): void => stop.abort(signal.reason)
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  let isAnswered = true
  const cancel = clock.setTimer(durationMs + lastAnswersMs, () => {
    isAnswered = false
    stop.abort(new ServeError('CANCELLED', 'the last answers did not come'))
  })
  try {
    await run({ ...turn, signal: stop.signal })
  } finally {
    cancel()
    signal.removeEventListener('abort', end)
  }
  return isAnswered
}
