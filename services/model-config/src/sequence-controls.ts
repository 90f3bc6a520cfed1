import type { SequenceBatching, SequenceControl } from './model-config.ts'

type ControlKind = SequenceControl['kind']

const SIGNAL_KINDS: readonly ControlKind[] = [
  'CONTROL_SEQUENCE_START',
  'CONTROL_SEQUENCE_END',
  'CONTROL_SEQUENCE_READY',
]
const CORRELATION_KIND: ControlKind = 'CONTROL_SEQUENCE_CORRID'
const CORRELATION_TYPES = new Set<string>([
  'TYPE_UINT64',
  'TYPE_INT64',
  'TYPE_UINT32',
  'TYPE_INT32',
  'TYPE_STRING',
])

/** The lists of a control that have entries, by field name. */
function filledLists(control: SequenceControl): [string, number][] {
  const lists: [string, number][] = [
    ['int32_false_true', control.int32_false_true.length],
    ['fp32_false_true', control.fp32_false_true.length],
    ['bool_false_true', control.bool_false_true.length],
  ]
  return lists.filter(([, length]) => length > 0)
}

function signalFault(control: SequenceControl): string | undefined {
  const [list, ...more] = filledLists(control)
  const end = `for ${control.kind}`
  if (list === undefined) {
    return `sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' ${end}`
  }
  if (more.length > 0) {
    return `sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' ${end}`
  }
  return list[1] === 2
    ? undefined
    : `sequence batching control '${list[0]}' must have exactly 2 entries ${end}`
}

function correlationFault(control: SequenceControl): string | undefined {
  return filledLists(control).length === 0
    ? undefined
    : `sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ${control.kind}`
}

/** The first fault of the control inputs themselves. */
function tensorFault(batching: SequenceBatching): string | undefined {
  const seen = new Set<string>()
  for (const { name } of batching.control_input) {
    if (name === '') return 'sequence batching control tensor must have a name'
    if (seen.has(name)) {
      return `sequence batching control tensor '${name}' is specified for multiple control kinds`
    }
    seen.add(name)
  }
  return undefined
}

/** The first fault of one kind of control: at most one tensor may carry it. */
function kindFault(batching: SequenceBatching, kind: ControlKind): string | undefined {
  const controls = batching.control_input
    .flatMap((input) => input.control)
    .filter((control) => control.kind === kind)
  for (const [i, control] of controls.entries()) {
    if (i > 0) return `sequence batching specifies multiple ${kind} tensors`
    const fault = kind === CORRELATION_KIND ? correlationFault(control) : signalFault(control)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** The first rule that the control inputs of `sequence_batching` break, as Triton's text. */
export function sequenceControlFault(batching: SequenceBatching, name: string): string | undefined {
  const fault =
    tensorFault(batching) ??
    [...SIGNAL_KINDS, CORRELATION_KIND]
      .map((kind) => kindFault(batching, kind))
      .find((found) => found !== undefined)
  if (fault !== undefined) return `${fault} for ${name}`
  const isAllowed = batching.control_input
    .flatMap((input) => input.control)
    .filter((control) => control.kind === CORRELATION_KIND)
    .every((control) => CORRELATION_TYPES.has(control.data_type))
  return isAllowed
    ? undefined
    : `unexpected data type for control ${CORRELATION_KIND} for ${name}. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING`
}
