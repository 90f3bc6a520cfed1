import { type Devices, type Engine, type Engines, NO_DEVICES } from '@tutti/backends'
import type { Clock, Logger } from '@tutti/chassis'
import type { PinnedVersion } from '@tutti/ensemble'
import type { ModelControl, ServerMetrics } from '@tutti/front-door'
import type { ModelRepository, RepositoryModel } from '@tutti/repository'
import type { RouterCalls } from '@tutti/transport'

/** What a step process is opened with. */
export interface StepOptions {
  /** This process's name among all replicas; a restarted process has another. */
  readonly replica: string
  /** Loaded at the start. */
  readonly models: readonly RepositoryModel[]
  /** Where models come from that are loaded later; without it none can be. */
  readonly repository?: Pick<ModelRepository, 'take'>
  /** Resolves once no request that pinned the version can come any more; a replaced version is kept until then. */
  readonly unpinned?: (pin: PinnedVersion) => Promise<void>
  readonly engines: Engines | readonly Engine[]
  /** Complete configurations from the models themselves (Triton's default). */
  readonly autoComplete: boolean
  /** Items; for batching models that auto-completion finds. Triton's default is 4. */
  readonly defaultMaxBatchSize?: number
  /** Models that load at the same time; 4, as Triton's `--model-load-thread-count`. */
  readonly loadParallelism?: number
  /** What instances may execute on; the CPU alone if absent. */
  readonly devices?: Devices
  /**
   * Requests that may wait for one model version whose config names no `max_queue_size`; 4096 if absent. Triton has no bound there:
   * this one is above what its clients keep open at a time and still keeps a stuck model from eating the memory.
   */
  readonly maxQueuedRequests?: number
  /** The routers that models call others through; undefined until there are some. Without it models can call none. */
  readonly routers?: () => RouterCalls | undefined
  /** What models load and unload others with; undefined where they may not. */
  readonly control?: () => ModelControl | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: ServerMetrics
  /** Uniform in [0, 1); for warm-up data. */
  readonly random?: () => number
}

/** The options with their defaults. */
export type StepSettings = Omit<StepOptions, 'engines'> &
  Required<Pick<StepOptions, 'loadParallelism' | 'devices' | 'maxQueuedRequests' | 'random'>> & {
    readonly engines: Engines
  }

const DEFAULT_LOAD_PARALLELISM = 4
const DEFAULT_MAX_QUEUED_REQUESTS = 4096

export function withDefaults(o: StepOptions): StepSettings {
  return {
    ...o,
    engines: new Map([...o.engines.values()].map((engine) => [engine.backend, engine])),
    loadParallelism: o.loadParallelism ?? DEFAULT_LOAD_PARALLELISM,
    devices: o.devices ?? NO_DEVICES,
    maxQueuedRequests: o.maxQueuedRequests ?? DEFAULT_MAX_QUEUED_REQUESTS,
    random: o.random ?? Math.random,
  }
}
