import type { ModelConfig, SequenceBatching, SequenceState } from '@tutti/model-config'
import type { StepRequest } from '@tutti/tensor'
import { scriptedConfig } from './scheduler-rig.ts'
import { batchRequest } from './step-builders.ts'

type ControlInput = SequenceBatching['control_input'][number]
type Control = ControlInput['control'][number]

/** A control input of INT32 0 and 1, or of what `rest` says. */
export function controlInput(
  name: string,
  kind: 'START' | 'READY' | 'END' | 'CORRID',
  rest: Partial<Control> = kind === 'CORRID'
    ? { data_type: 'TYPE_UINT64' }
    : { int32_false_true: [0, 1] },
): ControlInput {
  const control = {
    kind: `CONTROL_SEQUENCE_${kind}` as const,
    int32_false_true: [],
    fp32_false_true: [],
    bool_false_true: [],
    data_type: 'TYPE_INVALID' as const,
    ...rest,
  }
  return { name, control: [control] }
}

/** A state of FP32 [1] with zeros to begin with. */
export function sequenceState(rest: Partial<SequenceState> = {}): SequenceState {
  return {
    input_name: 'before',
    output_name: 'after',
    data_type: 'TYPE_FP32',
    dims: [1],
    initial_state: [],
    use_same_buffer_for_input_output: false,
    use_growable_memory: false,
    ...rest,
  }
}

/** A normalised config with sequences: direct, idle after a second, without control inputs. */
export function sequenceConfig(
  batching: Partial<SequenceBatching> = {},
  rest: Partial<ModelConfig> = {},
): ModelConfig {
  const sequence = {
    max_sequence_idle_microseconds: 1_000_000,
    control_input: [],
    state: [],
    iterative_sequence: false,
    ...batching,
  }
  return scriptedConfig({ sequence_batching: sequence, ...rest })
}

/** A request of a sequence: input `x` of shape [1, width]. */
export function sequenceRequest(
  o: {
    readonly id: bigint | string
    readonly start?: boolean
    readonly end?: boolean
    readonly timeoutUs?: bigint
  },
  width = 4,
): StepRequest {
  const { id: correlationId, start = false, end = false, timeoutUs = 0n } = o
  return batchRequest({
    width,
    correlationId,
    sequenceStart: start,
    sequenceEnd: end,
    timeoutUs,
  })
}
