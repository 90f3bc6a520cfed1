import type { QueueEntry } from './queue-entry.ts'
import type { BatchingRules } from './queue-rules.ts'

/** How many entries from the front make the next batch (0: none yet), and when to look again if none. */
export interface BatchPlan {
  readonly count: number
  readonly waitUntil: number
}

/** The entries that could share a batch, counted from the front of the queue. */
interface Candidates {
  readonly count: number
  readonly size: number
  /** Entries up to the largest preferred size that can be formed; 0 if none can. */
  readonly preferredCount: number
  /** True if the next entry cannot join, so that waiting cannot make the batch larger. */
  readonly isFull: boolean
  readonly oldest: number
}

const ONE_REQUEST: BatchPlan = { count: 1, waitUntil: 0 }

/**
 * Decides on the next batch as Triton's dynamic batcher does: the largest preferred size that can be formed; else all that fits once
 * the oldest has waited `maxQueueDelayMs` or nothing more can join; else wait. Pure; client batches stay whole.
 *
 * @param first - the front of the queue; the others follow in the order of service, across priority levels.
 * @see triton-inference-server/core, dynamic_batch_scheduler.cc, GetDynamicBatch
 */
export function planBatch<T>(first: QueueEntry<T>, rules: BatchingRules, now: number): BatchPlan {
  if (rules.maxBatchSize === 1) return ONE_REQUEST
  const found = gather(first, rules)
  const delayEnd = found.oldest + rules.maxQueueDelayMs
  const isDelayOver = rules.maxQueueDelayMs > 0 && now >= delayEnd
  if (found.preferredCount > 0 && !isDelayOver) return { count: found.preferredCount, waitUntil: 0 }
  const cannotGrow = found.isFull || found.size >= rules.maxPreferredBatchSize
  if (cannotGrow || isDelayOver || rules.maxQueueDelayMs === 0) {
    return { count: found.count, waitUntil: 0 }
  }
  return { count: 0, waitUntil: delayEnd }
}

function gather<T>(first: QueueEntry<T>, rules: BatchingRules): Candidates {
  let count = 0
  let size = 0
  let preferredCount = 0
  let isFull = false
  let oldest = Number.POSITIVE_INFINITY
  for (let entry: QueueEntry<T> | undefined = first; entry !== undefined; entry = entry.next) {
    const grown = size + entry.size
    if (count > 0) {
      // The batch passes the largest preferred size without meeting one: what is there counts as preferred.
      if (grown > rules.maxPreferredBatchSize && preferredCount === 0) preferredCount = count
      isFull = grown > rules.maxBatchSize || entry.key !== first.key
      if (isFull) break
    }
    size = grown
    count += 1
    if (entry.enqueuedAt < oldest) oldest = entry.enqueuedAt
    if (rules.preferredBatchSizes.has(size)) preferredCount = count
  }
  return { count, size, preferredCount, isFull, oldest }
}
