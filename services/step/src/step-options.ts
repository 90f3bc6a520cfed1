import type { BeyondConfig, PinnedVersion } from '@tutti/api'
import type { Devices, Engine, Engines, HostPolicies } from '@tutti/backends'
import type { Clock, Logger } from '@tutti/chassis'
import type { ModelRepository } from '@tutti/repository'
import type { ResponseCache } from '@tutti/response-cache'
import type { ModelControl } from '@tutti/serving'
import type { ServerMetrics } from '@tutti/telemetry'
import type { RouterCalls } from '@tutti/transport'
import type { RateLimiter } from './limiter/rate-limiter.ts'

/** @param caller - qualified. @returns the model that is called, qualified, or `model` as it is where no one model is meant. */
export type ResolveFrom = (caller: string, model: string) => string

/** The options that a step process is opened with. Models that settings beyond the configuration name are plain names. */
export interface StepOptions extends Partial<BeyondConfig> {
  /** This process's name among all replicas; a restarted process has another. */
  readonly replica: string
  /** Where models come from; without it none can be loaded. */
  readonly repository?: Pick<ModelRepository, 'take'>
  /** Resolves once no request that pinned the version can come any longer; a replaced version is kept until then. */
  readonly unpinned?: (pin: PinnedVersion) => Promise<void>
  readonly engines: Engines | readonly Engine[]
  /** Complete configurations from the models themselves (Triton's default). */
  readonly autoComplete: boolean
  /** Items; for batching models that auto-completion finds. Triton's default is 4. */
  readonly defaultMaxBatchSize?: number
  /** Models that load at the same time. */
  readonly loadParallelism: number
  /** The devices that instances may execute on. */
  readonly devices: Devices
  /** Requests that may wait for one model version whose config names no `max_queue_size`. */
  readonly maxQueuedRequests: number
  /** The routers that models call others through; undefined until there are some. Without it models can call none. */
  readonly routers?: () => RouterCalls | undefined
  /** The control that models load and unload others with; undefined where they may not. */
  readonly control?: () => ModelControl | undefined
  /** Finds the model that another model names, where names are unique only within a repository; both qualified. */
  readonly resolveFrom?: ResolveFrom | undefined
  /** Cache of the models whose `response_cache` enables it; closed by its owner. */
  readonly cache?: ResponseCache | undefined
  /** Those that the engines know; groups that name another are told so. */
  readonly hostPolicies?: HostPolicies | undefined
  /** Absent if instances execute whenever they are free. */
  readonly limiter?: RateLimiter | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: ServerMetrics
}

/** The options, with the engines by backend. */
export interface StepSettings extends StepOptions {
  readonly engines: Engines
}
