import type { ExecutionTimes } from '@tutti/backends'
import type { ModelConfig } from '@tutti/model-config'
import type { InstanceChoice } from '../execution/scheduler-parts.ts'
import type { InstanceLimits, LimitedInstance } from './rate-limiter.ts'

/** Lists the instances of a normalised config in the order of their numbers. */
export function limitedInstances(config: ModelConfig): readonly LimitedInstance[] {
  return config.instance_group.flatMap(({ rate_limiter: limiter, count, kind, gpus }) => {
    const devices = kind === 'KIND_GPU' && gpus.length > 0 ? gpus : [0]
    const { resources = [], priority = 0 } = limiter ?? {}
    const round = devices.map((device) => ({ resources, priority, device }))
    return Array.from({ length: count }, () => round).flat()
  })
}

/** Instances that each execute one batch at a time, when the limiter allows it. */
export class LimitedInstances implements InstanceChoice {
  readonly #limits: InstanceLimits
  readonly #hasWork: () => boolean
  readonly #isBusy: boolean[]

  constructor(o: {
    readonly count: number
    readonly limits: InstanceLimits
    /** Checks whether anything waits for an instance. */
    readonly hasWork: () => boolean
  }) {
    this.#limits = o.limits
    this.#hasWork = o.hasWork
    this.#isBusy = Array.from({ length: o.count }, () => false)
  }

  get idle(): number {
    return this.#isBusy.filter((isBusy) => !isBusy).length
  }

  /**
   * Picks the first instance that may begin. Idle instances that may not begin now wait at the limiter; the first to get its
   * resources executes.
   */
  pick(): number {
    if (!this.#hasWork()) return -1
    return this.#isBusy.findIndex((isBusy, i) => !isBusy && this.#limits.mayBegin(i))
  }

  begin(instance: number): void {
    this.#isBusy[instance] = true
    this.#limits.begin(instance)
  }

  end(instance: number): void {
    this.#isBusy[instance] = false
    this.#limits.end(instance)
  }
}

/** Limits the instance choice of a model with sequences: it chooses an instance only when the limiter allows it. */
export function limitChoice(inner: InstanceChoice, limits: InstanceLimits): InstanceChoice {
  return {
    get idle() {
      return inner.idle
    },
    pick: (now) => {
      const instance = inner.pick(now)
      return instance < 0 || limits.mayBegin(instance) ? instance : -1
    },
    begin: (instance) => {
      inner.begin(instance)
      limits.begin(instance)
    },
    end: (instance, times: ExecutionTimes | undefined) => {
      inner.end(instance, times)
      limits.end(instance)
    },
  }
}
