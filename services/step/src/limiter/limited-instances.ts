import type { ExecutionTimes } from '@tutti/backends'
import type { ModelConfig } from '@tutti/model-config'
import type { InstanceChoice } from '../execution/scheduler-parts.ts'
import type { InstanceLimits, LimitedInstance } from './rate-limiter.ts'

/** The instances of a normalised config in the order in which they are numbered. */
export function limitedInstances(config: ModelConfig): readonly LimitedInstance[] {
  return config.instance_group.flatMap(({ rate_limiter: limiter, count, kind, gpus }) => {
    const devices = kind === 'KIND_GPU' && gpus.length > 0 ? gpus : [0]
    const { resources = [], priority = 0 } = limiter ?? {}
    const round = devices.map((device) => ({ resources, priority, device }))
    return Array.from({ length: count }, () => round).flat()
  })
}

/** Instances of which each executes one batch at a time, as long as the limiter lets it. */
export class LimitedInstances implements InstanceChoice {
  readonly #limits: InstanceLimits
  readonly #hasWork: () => boolean
  readonly #isBusy: boolean[]

  constructor(o: {
    readonly count: number
    readonly limits: InstanceLimits
    /** Whether anything waits for an instance. */
    readonly hasWork: () => boolean
  }) {
    this.#limits = o.limits
    this.#hasWork = o.hasWork
    this.#isBusy = Array.from({ length: o.count }, () => false)
  }

  get idle(): number {
    return this.#isBusy.filter((isBusy) => !isBusy).length
  }

  /** The first that may. All that may not wait then: whichever gets its resources first executes. */
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

/** The choice of a model with sequences, as long as the limiter lets the chosen instance execute. */
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
