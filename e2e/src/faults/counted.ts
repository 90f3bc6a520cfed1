import { readFile } from 'node:fs/promises'
import type { HistoryEvent } from '../processes/history-check.ts'
import type { Question } from '../processes/questions.ts'
import { fp32, int64 } from '../tensors.ts'

export interface CountedRequest {
  /** By which its executions are counted; those of 0 are not. */
  readonly id: number
  /** How long it takes; default 0. */
  readonly holdMs?: number
  /** Bytes of its tensor; default 16. */
  readonly bytes?: number
}

/** `ens_counted`: `counted`, a Python model that adds one and counts, then `versioned`, which adds three. */
export function countedQuestion({ id, holdMs = 0, bytes = 16 }: CountedRequest): Question {
  const x = new Float32Array(Math.ceil(bytes / 4)).map((_, i) => ((i + id) * 7919) % 65_536)
  const inputs = [fp32('x', x), int64('id', [id]), int64('hold', [holdMs])]
  const expected = fp32(
    'y',
    x.map((value) => value + 4),
  ).data
  return { request: { modelName: 'ens_counted', inputs }, output: 'y', expected }
}

/** Reads what the model has written: how often each request was executed, by its id. */
export async function readCounts(file: string): Promise<ReadonlyMap<number, number>> {
  const counts = new Map<number, number>()
  for (const line of (await readFile(file, 'utf8')).trim().split('\n')) {
    const id = Number(line)
    if (id !== 0) counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  return counts
}

/**
 * Holds what was executed against what was answered: no request more than once, and each that was answered once. Pure.
 *
 * @returns what breaks a promise, in words; empty if nothing does.
 */
export function checkCounts(
  events: readonly HistoryEvent[],
  counts: ReadonlyMap<number, number>,
): readonly string[] {
  return events.flatMap((event) => {
    if (event.type !== 'ended') return []
    const times = counts.get(event.request) ?? 0
    if (times > 1) return [`request ${event.request} was executed ${times} times`]
    const isInvented = event.outcome.kind === 'right' && times === 0
    return isInvented ? [`request ${event.request} was answered, but never executed`] : []
  })
}
