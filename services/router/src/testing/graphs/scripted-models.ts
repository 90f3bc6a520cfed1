import { ServeError } from '@tutti/errors'
import {
  decodeBytesTensor,
  elementCount,
  encodeElements,
  type NamedTensor,
  NUMBER_READERS,
} from '@tutti/tensor'
import type { GraphSketch, ModelSketch, TensorType, Value } from './sketch.ts'

/*
 * How the models of a drawn graph answer. All of it follows from the seed, the model, what it reads, and how often it has read that
 * before. The executors of the test play it, and the interpreter looks it up.
 */

/** Hashes a text to 32 bits. */
export function hashOf(text: string, seed = 0): number {
  let hash = seed ^ 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

export type Values = ReadonlyMap<string, Value>

export type Texts = ReadonlyMap<string, string>

/** Writes what an execution reads. */
export function keyOf(model: Pick<ModelSketch, 'name'>, inputs: Values, parameters: Texts): string {
  const read = [...inputs].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const tensors = read.map(([name, one]) => `${name}:${show(one)}`)
  const texts = [...parameters].toSorted(([a], [b]) => (a < b ? -1 : 1)).join(';')
  return `${model.name}(${tensors.join(',')}|${texts})`
}

export function show({ datatype, shape, values }: Value): string {
  return `${datatype}[${shape.join()}]${values.join('/')}`
}

/** Draws an element. */
function elementOf(datatype: Value['datatype'], key: string): number | string | boolean {
  const hash = hashOf(key)
  if (datatype === 'INT64') return hash % 5
  if (datatype === 'BOOL') return hash % 2 === 0
  if (datatype === 'BYTES') return `t${hash % 1000}`
  return hash % 97 === 0 ? Number.NaN : (hash % 2 ** 22) - 2 ** 21
}

/** Draws a tensor of these extents. */
export function valueOf(datatype: Value['datatype'], shape: readonly number[], key: string): Value {
  const values = Array.from({ length: elementCount(shape) }, (_, i) =>
    elementOf(datatype, `${key}[${i}]`),
  )
  return { datatype, shape, values }
}

/** Chooses the extents that a model leaves open: of the first axis for each request anew if it is varied. */
export function extentsOf(
  model: Pick<ModelSketch, 'name' | 'isVaried'>,
  { dims }: TensorType,
  key: string,
): readonly number[] {
  return dims.map((extent, axis) => {
    if (extent !== -1) return extent
    if (axis === 0 && model.isVaried) return hashOf(`${key} extent`) % 4
    return 1 + (hashOf(`${model.name} ${axis}`) % 3)
  })
}

/** Computes what a model makes of its inputs. @param index - of the response. */
export function answerOf(
  model: ModelSketch,
  { inputs, parameters }: { readonly inputs: Values; readonly parameters: Texts },
  index = 0,
): Values {
  const key = `${keyOf(model, inputs, parameters)}#${index}`
  const isKept = (name: string): boolean =>
    !model.withholds || hashOf(`${key} keeps ${name}`) % 4 > 0
  const kept = model.outputs.filter(({ name }) => isKept(name))
  return new Map(
    kept.map(({ name, type }): [string, Value] => {
      const shape = extentsOf(model, type, key)
      if (model.maxBatchSize === 0) return [name, valueOf(type.datatype, shape, `${key}.${name}`)]
      const rows = rowsOf(inputs).map((row) =>
        valueOf(type.datatype, shape, `${keyOf(model, row, parameters)}.${name}`),
      )
      return [name, stack(rows, type.datatype, shape)]
    }),
  )
}

/** Takes a batch apart. */
function rowsOf(inputs: Values): readonly Values[] {
  const [first] = inputs.values()
  return Array.from(
    { length: first?.shape[0] ?? 0 },
    (_, row) => new Map([...inputs].map(([name, value]) => [name, rowOf(value, row)])),
  )
}

/** Returns one row of a tensor. */
export function rowOf({ datatype, shape, values }: Value, row: number): Value {
  const [, ...rest] = shape
  const size = elementCount(rest)
  return { datatype, shape: rest, values: values.slice(row * size, (row + 1) * size) }
}

/** Puts tensors of one shape above one another. @param shape - of each. */
export function stack(
  rows: readonly Value[],
  datatype: Value['datatype'],
  shape: readonly number[],
): Value {
  return { datatype, shape: [rows.length, ...shape], values: rows.flatMap(({ values }) => values) }
}

/** A failure on purpose. */
export interface ScriptedFailure {
  readonly reason: ServeError['reason']
  readonly executed: 'no' | 'maybe'
}

const FAILURES: readonly ScriptedFailure[] = [
  { reason: 'ENGINE_FAILED', executed: 'maybe' },
  { reason: 'STEP_UNAVAILABLE', executed: 'no' },
  { reason: 'STEP_LOST', executed: 'maybe' },
  { reason: 'STEP_LOST', executed: 'maybe' },
  { reason: 'QUEUE_FULL', executed: 'no' },
  { reason: 'OVERLOADED', executed: 'no' },
  { reason: 'ENGINE_STOPPED', executed: 'no' },
  { reason: 'INVALID_REQUEST', executed: 'maybe' },
]

/** The responses and the end of an execution, with the times since its begin. */
export interface Script {
  readonly responses: readonly { readonly afterMs: number; readonly index: number }[]
  readonly end: { readonly afterMs: number; readonly failure?: ScriptedFailure }
  /** Whether the last response says that it is the last one. */
  readonly isJoined: boolean
}

/** Looks up what happens in the n-th execution of what `key` says. */
export function scriptOf(
  { seed, slowestMs }: Pick<GraphSketch, 'seed' | 'slowestMs'>,
  model: ModelSketch,
  key: string,
  n: number,
): Script {
  const { reliability } = model
  const draw = (what: string): number =>
    hashOf(`${key} ${reliability === 'flaky' ? n : ''} ${what}`, seed)
  const time = (what: string): number =>
    model.isInstant && draw(`${what} at once`) % 4 > 0 ? 0 : 1 + (draw(what) % slowestMs)
  if (reliability === 'hanging') {
    return { responses: [], end: { afterMs: Number.POSITIVE_INFINITY }, isJoined: true }
  }
  const fails = reliability === 'broken' || (reliability === 'flaky' && draw('fails') % 5 < 2)
  const failure = FAILURES[draw('how') % FAILURES.length]
  const wanted = model.isDecoupled ? draw('count') % 4 : fails ? 0 : 1
  let afterMs = 0
  const responses = Array.from({ length: wanted }, (_, index) => {
    afterMs += time(`response ${index}`)
    return { afterMs, index }
  })
  if (fails && failure !== undefined) {
    return { responses, end: { afterMs: afterMs + time('end'), failure }, isJoined: false }
  }
  const isJoined = wanted > 0 && !model.endsLate
  return { responses, end: { afterMs: isJoined ? afterMs : afterMs + time('end') }, isJoined }
}

export function failureText({ name }: Pick<ModelSketch, 'name'>): string {
  return `${name} broke`
}

export function toError(model: ModelSketch, { reason }: ScriptedFailure): ServeError {
  return new ServeError(reason, failureText(model))
}

/** Converts a value to the tensor that it stands for. */
export function toTensor(name: string, { datatype, shape, values }: Value): NamedTensor {
  return { name, datatype, shape, data: encodeElements(datatype, values) }
}

/** Converts a tensor to its value. */
export function toValue({ datatype, shape, data }: Omit<NamedTensor, 'name'>): Value {
  if (datatype === 'BYTES') {
    const texts = decodeBytesTensor(data).map((one) => new TextDecoder().decode(one))
    return { datatype, shape, values: texts }
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const read = NUMBER_READERS[datatype]
  const numbers = Array.from({ length: elementCount(shape) }, (_, i) => Number(read?.(view, i)))
  if (datatype === 'BOOL') return { datatype, shape, values: numbers.map((one) => one !== 0) }
  if (datatype !== 'FP32' && datatype !== 'INT64') throw new Error(`no ${datatype} was drawn`)
  return { datatype, shape, values: numbers }
}
