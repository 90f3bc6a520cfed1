import type { NamedTensor, StepTimes } from '@tutti/tensor'

/** Part of each new answer in the mean of its size. */
const SIZE_WEIGHT = 1 / 64
/** Part of each new answer in what is known of its replica. */
const REPLICA_WEIGHT = 1 / 16
/** One answer, that of a first run for example or of a size that does not tell the time, says no more than that. */
const MOST_SLOW = 4
/** Revisions that are remembered, some 300 bytes each. */
const MAX_REVISIONS = 4096
const SIZES = 33
/** Most work that counts, some days: sums of it are exact, whatever times a replica reports. */
const MOST_US = 2 ** 40

/** How fast a replica answers, as far as its choice depends on it. */
export interface ReplicaSpeed {
  /** Ratio of the time that its requests take to the time that they take anywhere; 1 at first. */
  slowness: number
  /** Whether an answer told its speed since the last heartbeat. */
  hasAnswered: boolean
}

/** The work that a request is expected to be. */
export interface Work {
  /** Whole microseconds, so that sums are exact. */
  readonly us: number
  /** Size class of the inputs, by which it was looked up; 0 if it was not. */
  readonly size: number
}

/** Work of a request for which there was no choice. */
export const UNWEIGHED: Work = { us: 0, size: 0 }

/** A place that was taken for some work. */
export interface WeighedPlace {
  readonly pin: { readonly key: string }
  readonly work: Work
  readonly replica: ReplicaSpeed
}

/** Learns from answers how long requests execute, by revision and by the size of their inputs, and how much slower a replica is. */
export class ReplicaWork {
  /**
   * Mean work in microseconds, by the key of the revision and then by size; 0 while unknown. The first is the mean of all sizes.
   */
  readonly #means = new Map<string, Float64Array>()

  /**
   * Estimates the work of a request from its revision and the size of its inputs, rounded to powers of two.
   * @returns 1 us while no answer is known.
   */
  expect(key: string, inputs: readonly Pick<NamedTensor, 'data'>[]): Work {
    let bytes = 0
    for (const { data } of inputs) bytes += data.byteLength
    const size = Math.min(SIZES - 1, 33 - Math.clz32(Math.min(bytes, 0xffff_ffff)))
    const means = this.#means.get(key)
    // In powers of two: where a size does not tell the time, the mean moves, and requests in flight still count alike.
    const us = means?.[size] || means?.[0] || 1
    return { us: 2 ** Math.max(0, Math.round(Math.log2(us))), size }
  }

  /** Learns from the times of an answer; without times it learns nothing. */
  learn(
    { pin: { key }, work: { size }, replica }: WeighedPlace,
    times: StepTimes | undefined,
  ): void {
    if (times === undefined) return
    const ns = times.computeInputNs + times.computeInferNs + times.computeOutputNs
    const us = Math.min(MOST_US, ns / 1e3)
    // The answer of a cache says nothing of the model.
    if (us <= 0 || size === 0) return
    const means = this.#means.get(key) ?? this.#remember(key)
    const expected = means[size] || us
    const ratio = Math.min(MOST_SLOW, Math.max(1 / MOST_SLOW, us / expected))
    replica.slowness += REPLICA_WEIGHT * (ratio - replica.slowness)
    replica.hasAnswered = true
    means[size] = expected + SIZE_WEIGHT * (us - expected)
    means[0] = (means[0] || us) + SIZE_WEIGHT * (us - (means[0] || us))
  }

  /**
   * Learns from an attempt that was cancelled because another replica had answered: it would have taken longer than that, which
   * says nothing of a replica that is known to be as slow.
   *
   * @param o.elapsedUs - from its beginning to its end.
   * @param o.workUs - what was outstanding at the replica when it began, its own work included.
   */
  learnAtLeast(
    { pin: { key }, work: { size }, replica }: WeighedPlace,
    o: { readonly elapsedUs: number; readonly workUs: number },
  ): void {
    const expected = this.#means.get(key)?.[size] ?? 0
    if (size === 0 || expected === 0) return
    const ratio = Math.min(MOST_SLOW, o.elapsedUs / Math.max(expected, o.workUs))
    if (ratio <= replica.slowness) return
    replica.slowness += REPLICA_WEIGHT * (ratio - replica.slowness)
    replica.hasAnswered = true
  }

  #remember(key: string): Float64Array {
    if (this.#means.size >= MAX_REVISIONS) this.#means.clear()
    const means = new Float64Array(SIZES)
    this.#means.set(key, means)
    return means
  }
}

/** Brings the slowness of a replica without answers nearer to 1. At each heartbeat: within some ten seconds a slow replica is tried again. */
export function forgive(replica: ReplicaSpeed): void {
  if (!replica.hasAnswered) replica.slowness += REPLICA_WEIGHT * (1 - replica.slowness)
  replica.hasAnswered = false
}
