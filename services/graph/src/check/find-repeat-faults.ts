import { isDecoupled, type ModelConfig } from '@tutti/model-config'
import { formatShape, fromConfigDatatype, shapeMatches } from '@tutti/tensor'
import { type GraphStep, tensorName } from '../graph.ts'
import { LENGTHS, madeByMap, signatureOf } from '../step-signature.ts'
import { fallbackConfig } from './add-fallbacks.ts'
import { checkCondition, readTensors } from './check-condition.ts'
import type { Checked, ConditionFault, Place } from './condition-fault.ts'
import { valueFaults } from './find-value-faults.ts'
import { hintOf } from './problem.ts'

const INTEGERS = ['INT8', 'INT16', 'INT32', 'INT64', 'UINT8', 'UINT16', 'UINT32', 'UINT64']

const reason = 'RepeatInvalid'

/** Finds every broken rule of the steps that run for each item, or in a loop. What cannot be told yet is left out. */
export function findRepeatFaults(o: Checked): readonly ConditionFault[] {
  return o.graph.steps.flatMap((step, index) => [...stepFaults(o, step, index)])
}

function* stepFaults(o: Checked, step: GraphStep, index: number): Generator<ConditionFault> {
  const { forEach, loop } = step
  if (forEach === undefined && loop === undefined) return
  const at = { step: index, field: forEach === undefined ? 'loop' : 'forEach' }
  if (forEach !== undefined && loop !== undefined) {
    const want = 'one of them, and the other one on a step of an Ensemble that it runs'
    yield { reason, at: { step: index, field: 'loop' }, got: 'it beside forEach', want }
  }
  if (o.config.max_batch_size > 0) {
    const got = `it in an Ensemble with batches of up to ${o.config.max_batch_size}`
    yield { reason, at, got, want: 'maxBatchSize 0: the rows of a batch may differ in it' }
  }
  const model = o.modelOf(step)
  if (model === undefined) return
  const got = `it for '${model.name}', `
  if (isDecoupled(model)) {
    const want = 'a model of one response for each request'
    yield { reason, at, got: `${got}which is decoupled`, want }
  }
  if (model.sequence_batching !== undefined) {
    const want = 'a model without sequence_batching: its requests have no sequence of their own'
    yield { reason, at, got: `${got}whose requests are sequences`, want }
  }
  const own = [...callFaults(o, { step, index, model })]
  yield* own
  yield* fallbackFaults(o, { step, index, model }, own)
}

interface CheckedStep {
  readonly step: GraphStep
  readonly index: number
  /** Model of the step, or of its fallback. */
  readonly model: ModelConfig
}

function* callFaults(o: Checked, checked: CheckedStep): Generator<ConditionFault> {
  yield* mapFaults(o, checked)
  yield* loopFaults(o, checked)
}

/** Finds why a fallback cannot run for each item, or in a loop, as the step does. What is wrong with the step itself is told by it. */
function* fallbackFaults(
  o: Checked,
  { step, index, model }: CheckedStep,
  own: readonly ConditionFault[],
): Generator<ConditionFault> {
  const fallback = fallbackConfig(step, o.modelOf)
  if (fallback === undefined) return
  const told = new Set(own.map(({ at }) => at.field))
  const faults = [
    ...callFaults(o, { step, index, model: fallback }),
    ...readFaults({ step, index, model }, fallback),
  ]
  for (const { at, got, ...fault } of faults) {
    if (told.has(at.field)) continue
    const place = { step: index, field: 'onError.fallback' }
    yield { ...fault, at: place, got: `${got} (${at.field})` }
  }
}

/** Compares what `until` reads of a fallback with what it reads of the step: it is compiled once for both. */
function* readFaults(
  { step, index, model }: CheckedStep,
  fallback: ModelConfig,
): Generator<ConditionFault> {
  for (const { output } of step.loop?.reads ?? []) {
    const [own, other] = [model, fallback].map((one) =>
      one.output.find(({ name }) => name === output),
    )
    if (own === undefined || other === undefined || own.data_type === other.data_type) continue
    const at = { step: index, field: 'loop.until' }
    const got = `'${output}' of ${show(other)}`
    yield { reason: 'DatatypeMismatch', at, got, want: `${show(own)} as of '${model.name}'` }
  }
}

function* mapFaults(o: Checked, checked: CheckedStep): Generator<ConditionFault> {
  const { step, index, model } = checked
  const { forEach } = step
  if (forEach === undefined) return
  for (const { name } of madeByMap(forEach)) {
    if (!model.output.some((output) => output.name === name)) continue
    const field = name === LENGTHS ? 'forEach.gather' : 'forEach.onItemError'
    const got = `the output '${name}' of '${model.name}', which this makes too`
    yield { reason, at: { step: index, field }, got, want: 'an Ensemble that renames it' }
  }
  const scalar = model.output.find(
    ({ name, dims }) => dims.length === 0 && step.outputs.some((one) => one.name === name),
  )
  if (forEach.gather === 'Concat' && scalar !== undefined) {
    const got = `Concat of '${scalar.name}', which has no axis`
    yield { reason, at: { step: index, field: 'forEach.gather' }, got, want: 'Stack' }
  }
  yield* countFaults(o, checked)
  yield* defaultFaults(checked)
}

function* countFaults(o: Checked, { step, index }: CheckedStep): Generator<ConditionFault> {
  const control = step.controls?.find(({ name }) => name === step.forEach?.count)
  const found = control && o.definitions.get(tensorName(o.graph, control.from))
  if (found === undefined) return
  const datatype = fromConfigDatatype(found.dataType) ?? found.dataType
  const isOne = found.fullDims.every((extent) => extent === 1 || extent === -1)
  if (isOne && INTEGERS.includes(datatype)) return
  const got = `'${control?.name}' of ${datatype}${formatShape(found.fullDims)}`
  yield { reason, at: { step: index, field: 'forEach.count' }, got, want: 'one integer' }
}

function* defaultFaults({ step, index, model }: CheckedStep): Generator<ConditionFault> {
  const { itemDefault } = step.forEach ?? {}
  if (step.forEach === undefined || itemDefault === undefined) return
  const field = 'forEach.onItemError.default'
  const made = madeByMap(step.forEach)
  for (const { name } of step.outputs) {
    if (Object.hasOwn(itemDefault, name) || made.some((one) => one.name === name)) continue
    const got = `none for '${name}', which is read`
    yield { reason, at: { step: index, field }, got, want: 'a value for an item that failed' }
  }
  const seen = signatureOf(step, model)
  for (const [name, value] of Object.entries(itemDefault)) {
    const at = { step: index, field: `${field}[${name}]` }
    const output = model.output.find((one) => one.name === name)
    const dims = seen.output.find((one) => one.name === name)?.dims ?? []
    if (output === undefined) {
      yield unknownPort(at, checkedPort(model, 'output', name))
      continue
    }
    const shapes = [step.forEach.gather === 'Concat' ? dims : output.dims]
    const want = `what '${model.name}' makes of an item`
    yield* valueFaults(value, { at, want, dataType: output.data_type, shapes })
  }
}

interface Port {
  readonly got: string
  readonly want: string
}

function checkedPort(model: ModelConfig, side: 'input' | 'output', name: string): Port {
  const names = model[side].map((one) => one.name)
  return { got: `'${name}'`, want: `an ${side} of '${model.name}'${hintOf(name, names)}` }
}

function unknownPort(at: Place, port: Port): ConditionFault {
  return { reason: 'UnknownTensor', at, ...port }
}

function* loopFaults(o: Checked, checked: CheckedStep): Generator<ConditionFault> {
  const { step, index, model } = checked
  for (const { input, output } of step.loop?.carry ?? []) {
    const at = { step: index, field: `loop.carry[${input}]` }
    const to = model.input.find(({ name }) => name === input)
    const from = model.output.find(({ name }) => name === output)
    if (to === undefined) yield unknownPort(at, checkedPort(model, 'input', input))
    if (from === undefined) yield unknownPort(at, checkedPort(model, 'output', output))
    if (to === undefined || from === undefined) continue
    const got = `'${output}' of ${show(from)}`
    const want = `${show(to)}, which '${input}' takes`
    if (to.data_type !== from.data_type) yield { reason: 'DatatypeMismatch', at, got, want }
    else if (!shapeMatches(to.dims, from.dims)) yield { reason: 'ShapeMismatch', at, got, want }
  }
  yield* untilFaults(o, checked)
}

function* untilFaults(
  { graph, definitions }: Checked,
  { step, index, model }: CheckedStep,
): Generator<ConditionFault> {
  const { loop } = step
  if (loop?.until === undefined) return
  const { until, reads } = loop
  const at = { step: index, field: 'loop.until' }
  const tensors = [...readTensors(until, step, { graph, definitions })]
  for (const { name, output } of reads) {
    const made = model.output.find((one) => one.name === output)
    if (made === undefined) yield unknownPort(at, checkedPort(model, 'output', output))
    else tensors.push({ name, datatype: fromConfigDatatype(made.data_type), shape: made.dims })
  }
  yield* checkCondition(at, until, tensors)
}

function show({
  data_type: dataType,
  dims,
}: ModelConfig['input'][number] | ModelConfig['output'][number]): string {
  return `${fromConfigDatatype(dataType) ?? dataType}${formatShape(dims)}`
}
