import { formatShape, fromConfigDatatype, type Shape, shapeMatches } from '@tutti/tensor'
import type { Constant } from '../constant.ts'
import type { GraphStep } from '../graph.ts'
import type { Checked, ConditionFault, Place } from './condition-fault.ts'

/** Finds constants of a step that are not what its model takes. */
export function* constantFaults(
  { config, configOf }: Checked,
  step: GraphStep,
  index: number,
): Generator<ConditionFault> {
  const model = configOf(step)
  for (const { name, from } of step.inputs) {
    if (from.kind !== 'constant') continue
    const declared = model?.input.find((input) => input.name === name)
    if (model === undefined || declared === undefined) continue
    const at = { step: index, field: `constants[${name}]` }
    const want = `what '${model.name}' takes`
    const batches = model.max_batch_size > 0 && config.max_batch_size === 0
    const shapes = [declared.dims, ...(batches ? [[-1, ...declared.dims]] : [])]
    yield* valueFaults(from.constant, { at, want, dataType: declared.data_type, shapes })
  }
}

/** Compares the values that stand in for the outputs of a step that has failed with those outputs. */
export function* answerFaults(
  o: Checked,
  step: GraphStep,
  index: number,
): Generator<ConditionFault> {
  const { onError } = step.call ?? {}
  if (onError?.kind !== 'default') return
  const field = 'onError.default'
  const wanted = step.outputs.map(({ name }) => `'${name}'`).join(', ')
  for (const { name } of step.outputs) {
    if (onError.outputs.some((one) => one.name === name)) continue
    const at = { step: index, field }
    yield { reason: 'CallInvalid', at, got: `no value of '${name}'`, want: `those of ${wanted}` }
  }
  for (const { name, value } of onError.outputs) {
    const at = { step: index, field: `${field}[${name}]` }
    if (step.outputs.some((output) => output.name === name)) {
      yield* answerTypeFaults(o, step, { at, name, value })
    } else {
      yield { reason: 'UnknownTensor', at, got: 'what nothing reads', want: `values of ${wanted}` }
    }
  }
}

function* answerTypeFaults(
  { config, configOf }: Checked,
  step: GraphStep,
  { at, name, value }: { readonly at: Place; readonly name: string; readonly value: Constant },
): Generator<ConditionFault> {
  const model = configOf(step)
  const declared = model?.output.find((output) => output.name === name)
  if (model === undefined || declared === undefined) return
  const batches = model.max_batch_size > 0 && config.max_batch_size === 0
  const shapes = [declared.dims, ...(batches ? [[-1, ...declared.dims]] : [])]
  const want = `what '${model.name}' makes`
  yield* valueFaults(value, { at, want, dataType: declared.data_type, shapes })
}

/** Parameters that say how a request is queued, or to which sequence it belongs: they are the request's, and no step has its own. */
const OF_REQUESTS = new Set([
  'sequence_id',
  'sequence_start',
  'sequence_end',
  'priority',
  'timeout',
])

/** Finds parameters of a step that would have no effect. */
export function* parameterFaults(
  { parameters, builtin }: GraphStep,
  step: number,
): Generator<ConditionFault> {
  if (parameters !== undefined && builtin !== undefined) {
    const got = 'them for a built-in, which reads none'
    const want = 'them at a Model or an Ensemble'
    yield { reason: 'InvalidSpec', at: { step, field: 'parameters' }, got, want }
  }
  for (const name of Object.keys(parameters ?? {})) {
    if (!OF_REQUESTS.has(name) && !name.startsWith('triton_')) continue
    const at = { step, field: `parameters[${name}]` }
    const got = 'a parameter that only a request can have'
    yield { reason: 'InvalidSpec', at, got, want: 'another name' }
  }
}

/** Finds defaults that are not what their input takes. */
export function* defaultFaults({ config, graph }: Checked): Generator<ConditionFault> {
  for (const [name, value] of Object.entries(graph.defaults ?? {})) {
    const input = config.input.find((one) => one.name === name)
    if (input === undefined) continue
    const at = { input: name, field: 'default' }
    yield* valueFaults(value, {
      at,
      want: 'its own',
      dataType: input.data_type,
      shapes: [input.dims],
    })
  }
}

/** Finds what is wrong with the type of a value. */
export function* valueFaults(
  { datatype, shape }: Constant,
  o: {
    readonly at: Place
    readonly want: string
    readonly dataType: string
    readonly shapes: readonly Shape[]
  },
): Generator<ConditionFault> {
  const { at, shapes } = o
  const wanted = fromConfigDatatype(o.dataType)
  if (wanted !== undefined && wanted !== datatype) {
    yield { reason: 'DatatypeMismatch', at, got: datatype, want: `${wanted}, ${o.want}` }
  } else if (!shapes.some((one) => shapeMatches(one, shape))) {
    const want = `${shapes.map(formatShape).join(' or ')}, ${o.want}`
    yield { reason: 'ShapeMismatch', at, got: `the shape ${formatShape(shape)}`, want }
  }
}
