import type { Dice } from '@tutti/graph/testing'
import { valueOf } from './scripted-models.ts'
import type {
  CalleeSketch,
  EnsembleSketch,
  InputPort,
  ModelSketch,
  Port,
  Ref,
  Reliability,
  TensorType,
  Value,
} from './sketch.ts'

/** A tensor that further steps may read. */
export interface Available {
  readonly ref: Ref
  readonly type: TensorType
  /** Whether a step that is skipped would make it. */
  readonly mayBeSkipped: boolean
  /** Whether requests or responses may lack it without a word. */
  readonly mayBeMissing: boolean
  isRead: boolean
}

/** A graph on the way. */
export interface Drawing {
  readonly roll: Dice
  readonly seed: number
  readonly slowestMs: number
  readonly models: ModelSketch[]
  readonly ensembles: EnsembleSketch[]
  /** Whether executions may fail at all. */
  readonly hasFailures: boolean
  /** Whether models of one response may say after it that they have ended: what reads it within a part goes on, what is behind the part waits. */
  readonly endsLate: boolean
}

export const TYPES: readonly TensorType[] = [
  { datatype: 'FP32', dims: [-1] },
  { datatype: 'FP32', dims: [2] },
  { datatype: 'FP32', dims: [-1, 2] },
  { datatype: 'FP32', dims: [-1, -1] },
  { datatype: 'INT64', dims: [1] },
  { datatype: 'INT64', dims: [-1] },
  { datatype: 'BYTES', dims: [-1] },
  { datatype: 'BYTES', dims: [-1, 1] },
]

export function pick<T>(roll: Dice, among: readonly [T, ...T[]]): T {
  return among[roll(among.length)] ?? among[0]
}

export function some<T>(roll: Dice, among: readonly T[]): T | undefined {
  return among.length === 0 ? undefined : among[roll(among.length)]
}

/** Tells yes so many times of a hundred. */
export function chance({ roll }: Pick<Drawing, 'roll'>, percent: number): boolean {
  return roll(100) < percent
}

export function isSameType(a: TensorType, b: TensorType): boolean {
  return a.datatype === b.datatype && a.dims.join() === b.dims.join()
}

/** Draws a value of a type. @param open - for extents that the type leaves open; drawn if absent. */
export function drawValue({ roll }: Pick<Drawing, 'roll'>, type: TensorType): Value {
  const shape = type.dims.map((extent) => (extent === -1 ? roll(4) : extent))
  return valueOf(type.datatype, shape, `value ${roll(2 ** 30)}`)
}

function drawReliability(d: Drawing): Reliability {
  if (!d.hasFailures) return 'sound'
  const roll = d.roll(100)
  if (roll < 62) return 'sound'
  if (roll < 92) return 'flaky'
  return roll < 98 ? 'broken' : 'hanging'
}

/** Draws a model, and adds it to the graph. */
export function drawModel(
  d: Drawing,
  o: {
    readonly inputs: readonly InputPort[]
    readonly outputs: readonly Port[]
    readonly maxBatchSize?: number
    readonly isDecoupled?: boolean
    /** Drawn if absent. */
    readonly reliability?: Reliability
    /** Whether its response has all outputs. */
    readonly isWhole?: boolean
    /** Whether it may say after its response that it has ended; not for what is called several times. */
    readonly mayEndLate?: boolean
  },
): ModelSketch {
  const { isDecoupled = false, isWhole = false, mayEndLate = false, maxBatchSize = 0 } = o
  const model: ModelSketch = {
    kind: 'model',
    name: `m${d.models.length}`,
    inputs: o.inputs,
    outputs: o.outputs,
    maxBatchSize,
    isDecoupled,
    reliability: o.reliability ?? drawReliability(d),
    isVaried: chance(d, 40),
    // A last response of a stream without outputs only says that it is the last one.
    withholds: !isWhole && !isDecoupled && chance(d, 6),
    endsLate: (isDecoupled || d.endsLate) && mayEndLate && chance(d, 20),
    isInstant: chance(d, 30),
    isDeaf: chance(d, 20),
  }
  d.models.push(model)
  return model
}

/** @param mayBeScalar - some of them have no axis. */
export function drawOutputs(d: Drawing, mayBeScalar: boolean): readonly Port[] {
  return Array.from({ length: 1 + d.roll(2) }, (_, i) => {
    const type = some(d.roll, TYPES) ?? SCALAR
    return { name: `o${i}`, type: mayBeScalar && chance(d, 20) ? SCALAR : type }
  })
}

const SCALAR: TensorType = { datatype: 'FP32', dims: [] }

/** Lists the outputs that a callee may lack because it skipped steps. */
export function optionalOutputsOf(callee: CalleeSketch): readonly string[] {
  if (callee.kind === 'model') return []
  return callee.outputs.flatMap(({ name, optional }) => (optional ? [name] : []))
}
