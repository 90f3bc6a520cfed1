import type { LoadedModel } from '@tutti/backends'
import type { ModelConfig } from '@tutti/model-config'
import type { InferRequest, NamedTensor, StepRequest } from '@tutti/tensor'
import type { ScheduledRequest } from '../execution/execution.ts'
import { readInitialStates } from './initial-states.ts'
import { compileControls } from './sequence-controls.ts'
import { SequenceModel } from './sequence-model.ts'
import { SequenceQueue } from './sequence-queue.ts'
import { compileNext, compileSequenceCheck, compileWarmUpCheck } from './sequence-request.ts'
import { compileSequenceRules } from './sequence-rules.ts'
import { compileStates, StateMemory, type StateRule } from './sequence-states.ts'

/** Parts that a model with `sequence_batching` needs beside those of every model. */
export interface Sequences {
  readonly check: (request: InferRequest) => StepRequest
  readonly warmUpCheck: (request: InferRequest) => StepRequest
  readonly states: readonly StateRule[]
}

/**
 * Reads the sequence settings of a config and the files of its initial states.
 *
 * @returns undefined for a model without sequences.
 * @throws ServeError CONFIG_INVALID if an initial state does not fit its state.
 */
export async function openSequences(
  config: ModelConfig,
  modelDirectory: string,
): Promise<Sequences | undefined> {
  if (config.sequence_batching === undefined) return undefined
  return compileSequences(config, await readInitialStates(config, modelDirectory))
}

/** Compiles the sequence settings of a config. @param initial - the states of a new sequence, by name of the input. */
export function compileSequences(
  config: ModelConfig,
  initial: ReadonlyMap<string, NamedTensor>,
): Sequences {
  const states = compileStates(config, initial)
  return {
    check: compileSequenceCheck(config, states),
    warmUpCheck: compileWarmUpCheck(config, states),
    states,
  }
}

/** Builds the parts of a scheduler that schedules sequences. */
export function buildSequences(
  { states }: Sequences,
  o: {
    readonly config: ModelConfig
    readonly loaded: LoadedModel
    readonly instances: number
    readonly maxQueuedRequests: number
  },
) {
  const { config, loaded } = o
  const rules = compileSequenceRules(config, o)
  const queue = new SequenceQueue<ScheduledRequest>(rules)
  const isPadded = rules.strategy.kind === 'direct' && rules.slots > 1
  const model = new SequenceModel(loaded, {
    places: queue,
    states,
    memory: new StateMemory(config.name),
    padding: isPadded ? compileControls(config).notReady : undefined,
    toNext: rules.isIterative ? compileNext(config, states) : undefined,
  })
  return { model, queue, instances: queue }
}
