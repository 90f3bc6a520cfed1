import type { StepRequest } from '@tutti/tensor'
import type { BatchKeyInput, QueueRules } from './queue-rules.ts'

/** What decides whether a waiting request joins a batch. */
export interface BatchCandidate {
  /** Items in the batch dimension, at least 1. */
  readonly size: number
  /** Requests of different keys never share a batch. */
  readonly key: string
  /** Milliseconds of the injected clock. */
  readonly enqueuedAt: number
  /** The one that is served after it. */
  readonly next: BatchCandidate | undefined
}

/** Gives equal text for requests that may share a batch. */
export function batchKey(
  inputs: readonly BatchKeyInput[],
  request: Pick<StepRequest, 'inputs'>,
): string {
  let key = ''
  for (const { name, hasShape } of inputs) {
    const input = request.inputs.find((tensor) => tensor.name === name)
    if (input === undefined) key += '-;'
    else key += hasShape ? `${input.shape.slice(1).join(',')};` : '+;'
  }
  return key
}

/**
 * Decides on the next batch as Triton's dynamic batcher does: the largest preferred size that can be formed; else all that fits
 * once the oldest has waited `maxQueueDelayMs` or nothing more can join; else it waits. Client batches stay whole.
 *
 * @param first - of the queue.
 * @returns how many requests execute together; 0 if they wait until `delayEnd`.
 * @see triton-inference-server/core, dynamic_batch_scheduler.cc, GetDynamicBatch
 */
export function nextBatch(
  first: BatchCandidate,
  rules: QueueRules,
  now: number,
): { readonly count: number; readonly delayEnd: number } {
  const { maxPreferredBatchSize, maxQueueDelayMs } = rules
  const { count, size, preferredCount, isFull, oldest } = gather(first, rules)
  const delayEnd = oldest + maxQueueDelayMs
  const isDelayOver = maxQueueDelayMs > 0 && now >= delayEnd
  if (preferredCount > 0 && !isDelayOver) return { count: preferredCount, delayEnd }
  const canGrow = !isFull && size < maxPreferredBatchSize
  const waits = canGrow && !isDelayOver && maxQueueDelayMs > 0
  return { count: waits ? 0 : count, delayEnd }
}

/** The requests that could share a batch, counted from the front of the queue, across priority levels. */
function gather(first: BatchCandidate, rules: QueueRules) {
  let count = 0
  let size = 0
  /** Requests up to the largest preferred size that can be formed; 0 if none can. */
  let preferredCount = 0
  /** The next request cannot join, so that waiting cannot make the batch larger. */
  let isFull = false
  let oldest = Number.POSITIVE_INFINITY
  for (let one: BatchCandidate | undefined = first; one !== undefined; one = one.next) {
    const grown = size + one.size
    if (count > 0) {
      // The batch passes the largest preferred size without meeting one: what is there counts as preferred.
      if (grown > rules.maxPreferredBatchSize && preferredCount === 0) preferredCount = count
      isFull = grown > rules.maxBatchSize || one.key !== first.key
      if (isFull) break
    }
    size = grown
    count += 1
    if (one.enqueuedAt < oldest) oldest = one.enqueuedAt
    if (rules.preferredBatchSizes.has(size)) preferredCount = count
  }
  return { count, size, preferredCount, isFull, oldest }
}
