import type { ModelConfig, SequenceBatching, SequenceState } from '../model/model-config.ts'

type ControlInput = SequenceBatching['control_input'][number]
type Control = ControlInput['control'][number]

const CORRID_TYPES: ReadonlySet<string> = new Set([
  'TYPE_UINT64',
  'TYPE_INT64',
  'TYPE_UINT32',
  'TYPE_INT32',
  'TYPE_STRING',
])

const EITHER = "either 'int32_false_true', 'fp32_false_true' or 'bool_false_true'"

function boolFault({ kind, ...control }: Control): string | undefined {
  const lists = ['int32_false_true', 'fp32_false_true', 'bool_false_true'] as const
  const given = lists.filter((name) => control[name].length > 0)
  const [list] = given
  if (list === undefined) return `sequence batching must specify ${EITHER} for ${kind}`
  if (given.length > 1) {
    return `sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for ${kind}`
  }
  return control[list].length === 2
    ? undefined
    : `sequence batching control '${list}' must have exactly 2 entries for ${kind}`
}

function corridFault(control: Control): string | undefined {
  const { int32_false_true: ints, fp32_false_true: floats, bool_false_true: bools } = control
  if (ints.length + floats.length + bools.length > 0) {
    return `sequence batching must not specify ${EITHER} for ${control.kind}`
  }
  return undefined
}

function controlFault(inputs: readonly ControlInput[]): string | undefined {
  const names = new Set<string>()
  const kinds = new Set<string>()
  for (const { name, control } of inputs) {
    if (name === '') return 'sequence batching control tensor must have a name'
    if (names.has(name) || control.length > 1) {
      return `sequence batching control tensor '${name}' is specified for multiple control kinds`
    }
    names.add(name)
    const [one] = control
    if (one === undefined)
      return `sequence batching control tensor '${name}' must specify a control`
    if (kinds.has(one.kind)) return `sequence batching specifies multiple ${one.kind} tensors`
    kinds.add(one.kind)
    const fault = one.kind === 'CONTROL_SEQUENCE_CORRID' ? corridFault(one) : boolFault(one)
    if (fault !== undefined) return fault
  }
  return undefined
}

function strategyFault({ oldest, direct }: SequenceBatching, most: number): string | undefined {
  const bad = oldest?.preferred_batch_size.find((size) => size <= 0 || size > most)
  if (bad !== undefined) {
    return `sequence batching preferred batch size must be ${bad <= 0 ? 'positive' : '<= max batch size'}`
  }
  if (oldest !== undefined && oldest.max_candidate_sequences < 0) {
    return `sequence batching max_candidate_sequences must be non-negative, got ${oldest.max_candidate_sequences},`
  }
  const used = direct?.minimum_slot_utilization ?? 0
  return used >= 0 && used <= 1
    ? undefined
    : 'sequence batching minimum slot utilization must be in range (0.0, 1.0]'
}

/** Finds a tensor with two sources. Triton lets the last one win, or ignores a state with a line in its log. */
function nameFault(config: ModelConfig, { control_input, state }: SequenceBatching) {
  const inputs = [
    ...config.input.map(({ name }) => name),
    ...control_input.map(({ name }) => name),
    ...state.map((s) => s.input_name),
  ]
  const twice = inputs.find((name, i) => inputs.indexOf(name) !== i)
  // Two equal inputs of the client load in Triton too.
  const isOurs = twice !== undefined && inputs.lastIndexOf(twice) >= config.input.length
  if (isOurs) return `sequence batching input '${twice}' is specified more than once`
  const outputs = state.map((s) => s.output_name)
  const again = outputs.find((name, i) => outputs.indexOf(name) !== i)
  return again === undefined ? undefined : `State output name '${again}' specified more than once`
}

function stateFault(state: SequenceState): string | undefined {
  const { input_name: input, output_name: output, dims } = state
  if (input === '' || output === '') {
    return "sequence batching state must specify 'input_name' and 'output_name'"
  }
  if (state.data_type === 'TYPE_INVALID') {
    return `sequence batching state '${input}' must specify 'data_type'`
  }
  return dims.every((extent) => extent >= 1 || extent === -1)
    ? undefined
    : `sequence batching state '${input}' dimension must be integer >= 1, or -1 to indicate a variable-size dimension`
}

function firstStateFault(states: readonly SequenceState[]): string | undefined {
  for (const state of states) {
    const fault = stateFault(state)
    if (fault !== undefined) return fault
  }
  return undefined
}

function corridTypeFault({ control_input: inputs }: SequenceBatching, model: string) {
  const controls = inputs.flatMap(({ control }) => control)
  const corrid = controls.find(({ kind }) => kind === 'CONTROL_SEQUENCE_CORRID')
  if (corrid === undefined || CORRID_TYPES.has(corrid.data_type)) return undefined
  return `unexpected data type for control ${corrid.kind} for ${model}. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING`
}

/**
 * Finds the first fault of `sequence_batching`: control inputs, strategy, states. The text is Triton's where Triton has one.
 * The values of initial states are not checked here, but read when the model is loaded.
 *
 * @returns undefined if there is no fault.
 */
export function sequenceFault(config: ModelConfig): string | undefined {
  const { name, sequence_batching: batching, max_batch_size: most } = config
  if (batching === undefined) return undefined
  const fault =
    controlFault(batching.control_input) ??
    strategyFault(batching, most) ??
    firstStateFault(batching.state) ??
    nameFault(config, batching)
  return fault === undefined ? corridTypeFault(batching, name) : `${fault} for ${name}`
}
