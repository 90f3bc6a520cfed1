import type { DynamicBatching, ModelConfig, QueuePolicy } from '@tutti/model-config'
import type { StepRequest } from '@tutti/tensor'

/** Rules that a queue reads for every request: a model's `dynamic_batching`, compiled, with defaults filled in. */
export interface QueueRules {
  /** Most items of a batch, at least 1. With 1 every request executes alone, even one that is itself a batch. */
  readonly maxBatchSize: number
  readonly preferredBatchSizes: ReadonlySet<number>
  readonly maxPreferredBatchSize: number
  /** Time that a batch waits for further requests, in milliseconds; 0 executes the waiting requests at once. */
  readonly maxQueueDelayMs: number
  /** Number of priority levels; 0 without levels, and then every request is of level 0. */
  readonly levels: number
  readonly defaultLevel: number
  readonly defaultLevelRules: LevelRules
  readonly levelRules: ReadonlyMap<number, LevelRules>
  /** Inputs that must be equal in requests of one batch; undefined if none must. */
  readonly batchKey: readonly BatchKeyInput[] | undefined
  /** Most waiting requests of the levels without a limit of their own: the server's limit. */
  readonly maxQueuedRequests: number
}

/** The queue policy of one priority level. */
export interface LevelRules {
  readonly timeoutAction: 'REJECT' | 'DELAY'
  /** Timeout in the queue, in microseconds; 0 for none. */
  readonly defaultTimeoutUs: number
  readonly allowTimeoutOverride: boolean
  /** Most waiting requests; 0 for the server's limit. */
  readonly maxQueueSize: number
}

const UNLIMITED: LevelRules = {
  timeoutAction: 'REJECT',
  defaultTimeoutUs: 0,
  allowTimeoutOverride: false,
  maxQueueSize: 0,
}

/** A model without a batcher: one request at a time, in order of arrival, without priorities and queue timeouts, as in Triton. */
const NO_BATCHER: DynamicBatching = {
  preferred_batch_size: [],
  max_queue_delay_microseconds: 0,
  preserve_ordering: false,
  priority_levels: 0,
  default_priority_level: 0,
  priority_queue_policy: {},
}

/** Compiles the rules for waiting and batching from a validated and normalised config. */
export function compileQueueRules(config: ModelConfig, maxQueuedRequests: number): QueueRules {
  const batcher = config.dynamic_batching ?? NO_BATCHER
  const preferred = batcher.preferred_batch_size
  const policies = Object.entries(batcher.priority_queue_policy)
  return {
    maxBatchSize: batcher === NO_BATCHER ? 1 : Math.max(1, config.max_batch_size),
    preferredBatchSizes: new Set(preferred),
    maxPreferredBatchSize: Math.max(0, ...preferred),
    maxQueueDelayMs: batcher.max_queue_delay_microseconds / 1000,
    levels: batcher.priority_levels,
    defaultLevel: batcher.priority_levels === 0 ? 0 : batcher.default_priority_level,
    defaultLevelRules: toLevelRules(batcher.default_queue_policy),
    levelRules: new Map(policies.map(([level, rules]) => [Number(level), toLevelRules(rules)])),
    batchKey: batcher === NO_BATCHER ? undefined : compileBatchKey(config),
    maxQueuedRequests,
  }
}

function toLevelRules(policy: QueuePolicy | undefined): LevelRules {
  if (policy === undefined) return UNLIMITED
  return {
    timeoutAction: policy.timeout_action,
    defaultTimeoutUs: policy.default_timeout_microseconds,
    allowTimeoutOverride: policy.allow_timeout_override,
    maxQueueSize: policy.max_queue_size,
  }
}

/** Input that must be equal in requests of one batch. */
export interface BatchKeyInput {
  readonly name: string
  /** True if the shape must be equal; false if only the presence of the input must. */
  readonly hasShape: boolean
}

/**
 * Compiles what requests must have in common to share a batch. Inputs with a variable dimension that are not ragged must have
 * equal shapes (without the batch dimension). If some inputs are optional, requests must have the same inputs.
 *
 * @returns inputs in the order of the config, since clients may send theirs in any order; undefined if nothing must be compared.
 */
export function compileBatchKey(config: ModelConfig): readonly BatchKeyInput[] | undefined {
  const hasOptional = config.input.some((input) => input.optional)
  const inputs = config.input
    .map(({ name, dims, allow_ragged_batch: isRagged }) => ({
      name,
      hasShape: !isRagged && dims.includes(-1),
    }))
    .filter(({ hasShape }) => hasOptional || hasShape)
  return config.max_batch_size <= 1 || inputs.length === 0 ? undefined : inputs
}

/** Makes the key of a request. Requests with equal keys may share a batch. */
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
