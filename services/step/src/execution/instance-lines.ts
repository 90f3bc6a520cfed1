import type { ExecutionTimes } from '@tutti/backends'
import { assert } from '@tutti/errors'

/** How much work may stand in line at an instance, where it can neither be cancelled nor overtaken any more. */
const LINE_NS = 500_000

/** Part of each new execution in the mean: eight executions are remembered, more or less. */
const MEAN_WEIGHT = 1 / 8

/**
 * The instances of one model version and what each has open. An instance gets a further execution while it is busy only
 * if its model is so short that the whole line is done within half a millisecond: then the way to the instance costs more
 * than the work there. For every other model what waits stays in the queue, where cancel, priorities and timeouts work.
 */
export class InstanceLines {
  readonly #open: number[]
  readonly #most: number
  #depth = 1
  #meanNs = Number.NaN

  /** @param most - executions that the engine takes per instance; 1 keeps everything in the queue. */
  constructor(instances: number, most: number) {
    this.#open = Array.from({ length: instances }, () => 0)
    this.#most = most
  }

  /** Instances that execute nothing. */
  get idle(): number {
    let idle = 0
    for (const open of this.#open) if (open === 0) idle += 1
    return idle
  }

  /** How many executions an instance may have open now. */
  get depth(): number {
    return this.#depth
  }

  get hasRoom(): boolean {
    return this.#open.some((open) => open < this.#depth)
  }

  /** Takes a place at the least busy instance; at the first of equally busy ones, so that a quiet model keeps one warm. */
  enter(): number {
    let instance = 0
    let least = Number.POSITIVE_INFINITY
    for (const [i, open] of this.#open.entries()) {
      if (open >= least) continue
      instance = i
      least = open
    }
    assert(least < this.#depth, 'an execution was begun without a free instance')
    this.#open[instance] = least + 1
    return instance
  }

  /** Gives the place back. @param times - of the execution, if it went well. */
  leave(instance: number, times: ExecutionTimes | undefined): void {
    this.#open[instance] = (this.#open[instance] ?? 1) - 1
    if (times !== undefined) this.#learn(times)
  }

  #learn(times: ExecutionTimes): void {
    const ns = times.computeInputNs + times.computeInferNs + times.computeOutputNs
    const mean = this.#meanNs
    this.#meanNs = Number.isNaN(mean) ? ns : mean + (ns - mean) * MEAN_WEIGHT
    this.#depth = Math.min(this.#most, Math.max(1, Math.floor(LINE_NS / this.#meanNs)))
  }
}
