import type { DynamicBatching, ModelConfig, QueuePolicy } from '@tutti/model-config'
import type { StepRequest } from '@tutti/tensor'

/** The rules that a queue reads for every request: a model's `dynamic_batching`, compiled, with the defaults filled in. */
export interface QueueRules {
  /** At least 1, also for a model without a batch dimension; 1 executes every request alone, also one that is a batch itself. */
  readonly maxBatchSize: number
  readonly preferredBatchSizes: ReadonlySet<number>
  readonly maxPreferredBatchSize: number
  /** 0 takes what is there. */
  readonly maxQueueDelayMs: number
  /** 0 without levels; then everything is level 0. */
  readonly levels: number
  readonly defaultLevel: number
  readonly defaultLevelRules: LevelRules
  readonly levelRules: ReadonlyMap<number, LevelRules>
  /** Inputs by which requests must be alike to share a batch; undefined where nothing is compared. */
  readonly batchKey: readonly BatchKeyInput[] | undefined
  /** The server's limit for levels without their own, in requests. */
  readonly maxQueuedRequests: number
}

/** The queue policy of one priority level. */
export interface LevelRules {
  readonly timeoutAction: 'REJECT' | 'DELAY'
  /** 0 is none. */
  readonly defaultTimeoutUs: number
  readonly allowTimeoutOverride: boolean
  /** 0 leaves the limit to the server. */
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

/** Compiles what a validated and normalised config says of waiting and batching. */
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

/** An input by which requests must be alike to share a batch. */
export interface BatchKeyInput {
  readonly name: string
  /** Its shape counts, not only whether it is there. */
  readonly hasShape: boolean
}

/**
 * Compiles what requests must have in common to share a batch: equal shapes (without the batch dimension) of inputs with a
 * variable dimension that are not ragged, and the same set of inputs if some are optional.
 *
 * @returns inputs in the order of the config, as clients may send theirs in any; undefined where nothing has to be compared.
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
