import type { BeyondConfig, PinnedVersion } from '@tutti/api'
import type { Devices, Engine, Engines, HostPolicies } from '@tutti/backends'
import type { Clock, Logger } from '@tutti/chassis'
import type { ModelConfig } from '@tutti/model-config'
import type { ModelRepository } from '@tutti/repository'
import type { ResponseCache } from '@tutti/response-cache'
import type { ModelControl } from '@tutti/serving'
import type { ServerMetrics } from '@tutti/telemetry'
import type { FindExecutor, ModelTarget } from '@tutti/tensor'
import type { RouterCalls } from '@tutti/transport'
import type { PartExecutor } from './execution/scheduler-parts.ts'
import type { RateLimiter } from './limiter/rate-limiter.ts'

/**
 * Finds the model that another model names. Names are unique only within a repository.
 *
 * @param caller - qualified name of the calling model.
 * @returns the qualified name; `model` itself if it names no model, or several.
 */
export type ResolveFrom = (caller: string, model: string) => string

/** The models of a step, for what runs parts of graphs over them. */
export interface PartModels {
  readonly executor: FindExecutor
  /** Finds the configuration of a revision. @throws ServeError MODEL_NOT_FOUND, MODEL_NOT_READY or REVISION_GONE. */
  configOf(pin: ModelTarget): ModelConfig
}

/** Options of a step. Settings beyond the configurations name models without a namespace. */
export interface StepOptions extends Partial<BeyondConfig> {
  /** Name of this process among all replicas. A restarted process has another name. */
  readonly replica: string
  /** Repository that models come from; if absent, none can be loaded. */
  readonly repository?: Pick<ModelRepository, 'take'>
  /** Waits until no request can come that has pinned the version. A replaced version is kept until then. */
  readonly unpinned?: (pin: PinnedVersion) => Promise<void>
  readonly engines: Engines | readonly Engine[]
  /** True to complete configurations from the models themselves (Triton's default). */
  readonly autoComplete: boolean
  /** Default `max_batch_size` of batching models that auto-completion finds, in items. Triton's default is 4. */
  readonly defaultMaxBatchSize?: number
  /** Most models that load at the same time. */
  readonly loadParallelism: number
  /** The devices that instances may execute on. */
  readonly devices: Devices
  /** True to execute built-in steps of ensembles for all; else only those that read files of a model of this step. */
  readonly builtins?: boolean
  /** Opens what runs parts of graphs over the models of the step; absent if each request is for one model. */
  readonly openParts?: (models: PartModels) => PartExecutor
  /** Most requests that may wait for one model version whose config sets no `max_queue_size`. */
  readonly maxQueuedRequests: number
  /**
   * Finds the routers through which models call other models; undefined until there are some. If absent, models can call none.
   */
  readonly routers?: () => RouterCalls | undefined
  /** Finds the control with which models load and unload others; undefined where they may not. */
  readonly control?: () => ModelControl | undefined
  /** Finds the model that another model names, where names are unique only within a repository. If absent, names are unique. */
  readonly resolveFrom?: ResolveFrom | undefined
  /** Cache of the models whose `response_cache` enables it; closed by its owner. */
  readonly cache?: ResponseCache | undefined
  /** Host policies that the engines know. A group that names another policy gets a warning. */
  readonly hostPolicies?: HostPolicies | undefined
  /** Rate limiter; absent if instances execute whenever they are idle. */
  readonly limiter?: RateLimiter | undefined
  /** Called when a model is lost to the process by a fault of its device. If absent, the model is UNAVAILABLE until it is loaded anew. */
  readonly modelLost?: (problem: string) => void
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: ServerMetrics
}

/** The options, with the engines by backend. */
export interface StepSettings extends StepOptions {
  readonly engines: Engines
}
