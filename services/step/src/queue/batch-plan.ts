import type { QueueEntry } from './entry-list.ts'

/** The batching rules of one model, with the defaults filled in. */
export interface BatchingRules {
  /** At least 1, also for a model without a batch dimension. */
  readonly maxBatchSize: number
  readonly preferredBatchSizes: ReadonlySet<number>
  readonly maxPreferredBatchSize: number
  /** 0 takes what is there. */
  readonly maxQueueDelayMs: number
}

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

/**
 * Decides on the next batch as Triton's dynamic batcher does: the largest preferred size that can be formed; else all that fits once
 * the oldest has waited `maxQueueDelayMs` or nothing more can join; else wait. Pure; client batches stay whole.
 *
 * @param following - the entry behind another in the order of service, across priority levels.
 * @see triton-inference-server/core, dynamic_batch_scheduler.cc, GetDynamicBatch
 */
export function planBatch<T>(
  first: QueueEntry<T> | undefined,
  following: (entry: QueueEntry<T>) => QueueEntry<T> | undefined,
  rules: BatchingRules,
  now: number,
): BatchPlan {
  const found = gather(first, following, rules)
  if (found.count === 0) return { count: 0, waitUntil: Number.POSITIVE_INFINITY }
  const isDelayOver = rules.maxQueueDelayMs > 0 && now >= found.oldest + rules.maxQueueDelayMs
  if (found.preferredCount > 0 && !isDelayOver) return { count: found.preferredCount, waitUntil: 0 }
  const cannotGrow = found.isFull || found.size >= rules.maxPreferredBatchSize
  if (cannotGrow || isDelayOver || rules.maxQueueDelayMs === 0) {
    return { count: found.count, waitUntil: 0 }
  }
  return { count: 0, waitUntil: found.oldest + rules.maxQueueDelayMs }
}

function gather<T>(
  first: QueueEntry<T> | undefined,
  following: (entry: QueueEntry<T>) => QueueEntry<T> | undefined,
  rules: BatchingRules,
): Candidates {
  let count = 0
  let size = 0
  let preferredCount = 0
  let isFull = false
  let oldest = Number.POSITIVE_INFINITY
  for (let entry = first; entry !== undefined; entry = following(entry)) {
    if (count > 0) {
      const grown = size + entry.size
      // The batch passes the largest preferred size without meeting one: what is there counts as preferred.
      if (grown > rules.maxPreferredBatchSize && preferredCount === 0) preferredCount = count
      if (grown > rules.maxBatchSize || entry.key !== first?.key) {
        isFull = true
        break
      }
    }
    size += entry.size
    count += 1
    if (entry.enqueuedAt < oldest) oldest = entry.enqueuedAt
    if (rules.preferredBatchSizes.has(size)) preferredCount = count
  }
  return { count, size, preferredCount, isFull, oldest }
}
