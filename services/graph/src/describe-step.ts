import { BUILTIN_HOST } from '@tutti/builtins'
import { formatShape } from '@tutti/tensor'
import type { Constant } from './constant.ts'
import { describeCall } from './describe-call.ts'
import type { ForEach, GraphStep, Loop } from './graph.ts'

/** Most elements of a constant that are shown. */
const SHOWN_ELEMENTS = 4
/** Most characters of an option that are shown. */
const SHOWN_CHARACTERS = 40

/** Describes in short phrases for people what a step does beside a plain call of its model: conditions, constants, repetitions, rules. */
export function describeStep(step: GraphStep): readonly string[] {
  const { builtin, when, inputs, parameters = {}, forEach, loop, call = {} } = step
  return [
    ...(builtin === undefined ? [] : describeBuiltin(builtin, step.model)),
    ...(when === undefined ? [] : [`only if ${when}`]),
    ...inputs.flatMap(({ name, from }) =>
      from.kind === 'constant' ? [`${name} = ${show(from.constant)}`] : [],
    ),
    ...Object.entries(parameters).map(([name, value]) => `parameter ${name} = ${value}`),
    ...(forEach === undefined ? [] : [describeForEach(forEach)]),
    ...(loop === undefined ? [] : [describeLoop(loop)]),
    ...describeCall(call),
  ]
}

function describeBuiltin(
  { options }: NonNullable<GraphStep['builtin']>,
  model: string,
): readonly string[] {
  const given = Object.entries(options).flatMap(([option, value]) =>
    value === undefined ? [] : [`${option} ${shorten(JSON.stringify(value))}`],
  )
  return [
    ...(model === BUILTIN_HOST ? [] : [`beside the files of ${model}`]),
    ...(given.length === 0 ? [] : [`with ${given.join(', ')}`]),
  ]
}

function shorten(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
}

function describeForEach({ items, maxItems, maxParallel }: ForEach): string {
  return `for each of ${items.join(', ')}: at most ${maxItems} items, ${maxParallel} calls at a time`
}

function describeLoop({ until, maxIterations }: Loop): string {
  const end = until === undefined ? '' : ` until ${until},`
  return `again${end} at most ${maxIterations} times`
}

function show({ datatype, shape, value }: Constant): string {
  const shown = value.slice(0, SHOWN_ELEMENTS).map((one) => JSON.stringify(one))
  const rest = value.length > SHOWN_ELEMENTS ? ', …' : ''
  return `${datatype}${formatShape(shape)} ${shown.join(', ')}${rest}`
}
