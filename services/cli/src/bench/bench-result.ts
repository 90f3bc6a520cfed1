import type { BenchLoad } from './load.ts'
import type { Failures, Tally } from './tally.ts'

/** The reported quantiles, by their names in the JSON. */
export const QUANTILES = { p50: 0.5, p90: 0.9, p99: 0.99, p999: 0.999, max: 1 } as const
export type QuantileName = keyof typeof QUANTILES
export const QUANTILE_NAMES = ['p50', 'p90', 'p99', 'p999', 'max'] as const

/** The result of one target under one load. */
export interface BenchResult {
  /** Label of the target: A, B and so on, in the order of the command line. */
  readonly target: string
  readonly url: string
  readonly load: BenchLoad
  readonly seconds: number
  readonly answered: number
  /** Requests that failed; they are in no other figure. */
  readonly failed: number
  readonly failures: readonly Failures[]
  /** Requests without an answer when the user ended the run, or when the wait for the last answers was over. */
  readonly unanswered: number
  /** Requests of an open loop that were due and not sent. */
  readonly unsent: number
  readonly answersPerSecond: number
  /** Latencies in milliseconds; undefined if there was no answer. */
  readonly latencyMs:
    | (Readonly<Record<QuantileName, number>> & { readonly mean: number })
    | undefined
  /** Notes for the reader of the figures, such as reasons of failures. */
  readonly notes: readonly string[]
}

/** Share of the time that the client is busy. Above it the client rather than the server may be measured. */
const BUSY = 0.9

export function toResult(
  target: { readonly label: string; readonly url: string },
  load: BenchLoad,
  tally: Tally,
): BenchResult {
  const { latencies, failedCount, failures, unanswered, unsent, elapsedMs } = tally
  const answered = latencies.count
  const seconds = elapsedMs / 1000
  const result = {
    target: target.label,
    url: target.url,
    load,
    seconds,
    answered,
    failed: failedCount,
    failures,
    unanswered,
    unsent,
    answersPerSecond: seconds === 0 ? 0 : answered / seconds,
    latencyMs: quantilesOf(tally),
  }
  return { ...result, notes: notesOf(result, tally) }
}

function quantilesOf({ latencies }: Tally): BenchResult['latencyMs'] {
  const mean = latencies.meanMs
  if (mean === undefined) return undefined
  const at = (q: number): number => latencies.quantileMs(q) ?? 0
  const { p50, p90, p99, p999, max } = QUANTILES
  return { mean, p50: at(p50), p90: at(p90), p99: at(p99), p999: at(p999), max: at(max) }
}

function notesOf(
  result: Omit<BenchResult, 'notes'>,
  { busyMs, elapsedMs, isFull }: Tally,
): readonly string[] {
  const { load, unsent, answered, failures, unanswered } = result
  const notes = failures.map(
    ({ reason, count, message }) => `${count} failed with ${reason}, the first: ${message}`,
  )
  if (unanswered > 0) notes.push(`${unanswered} had no answer when the run ended`)
  if (unsent > 0) {
    const why = isFull
      ? 'as many were in flight as --max-in-flight allows'
      : 'this client can send no more'
    notes.push(
      `the rate was not reached: ${unsent} requests were due and not sent, ${why}; latencies are too low`,
    )
  }
  const share = elapsedMs === 0 ? 0 : busyMs / elapsedMs
  // An open loop waits for its next request in turns of the event loop.
  if (load.kind === 'closed' && share > BUSY && answered > 0) {
    const percent = (share * 100).toFixed(0)
    notes.push(`this client was busy for ${percent} % of the time: the server may do more`)
  }
  return notes
}
