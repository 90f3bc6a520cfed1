/*
 * The graphs that tests draw at random, as plain data: the manifests are printed from it, and the interpreter reads it. It knows
 * nothing of the graph package.
 */

export type SketchDatatype = 'FP32' | 'INT64' | 'BYTES' | 'BOOL'

/** A tensor by its elements. */
export interface Value {
  readonly datatype: SketchDatatype
  readonly shape: readonly number[]
  readonly values: readonly (number | string | boolean)[]
}

export interface TensorType {
  readonly datatype: SketchDatatype
  readonly dims: readonly number[]
}

export interface Port {
  readonly name: string
  readonly type: TensorType
}

/** An input of a model or an ensemble. */
export interface InputPort extends Port {
  readonly optional: boolean
  readonly default?: Value
}

/** How executions of a model end: well, sometimes with a failure, or always with the same one; or never. */
export type Reliability = 'sound' | 'flaky' | 'broken' | 'hanging'

export interface ModelSketch {
  readonly kind: 'model'
  readonly name: string
  readonly inputs: readonly InputPort[]
  readonly outputs: readonly Port[]
  /** 0 for a model without batches. Only steps for each item have models with. */
  readonly maxBatchSize: number
  readonly isDecoupled: boolean
  readonly reliability: Reliability
  /** Whether extents that it leaves open differ from request to request. */
  readonly isVaried: boolean
  /** Whether responses lack outputs now and then. */
  readonly withholds: boolean
  /** Whether it says that it has ended some time after its response. */
  readonly endsLate: boolean
  /** Whether it answers at once. */
  readonly isInstant: boolean
  /** Whether it answers although its request was cancelled. */
  readonly isDeaf: boolean
}

/** A tensor of an ensemble: an input, or `STEP.OUTPUT`. */
export type Ref = string

export interface EnsembleOutput extends Port {
  /** Several for `firstOf`. */
  readonly from: readonly Ref[]
  readonly optional: boolean
}

export interface EnsembleSketch {
  readonly kind: 'ensemble'
  readonly name: string
  readonly inputs: readonly InputPort[]
  readonly outputs: readonly EnsembleOutput[]
  readonly steps: readonly StepSketch[]
  readonly timeoutMs?: number
  readonly isDecoupled: boolean
}

export type CalleeSketch = ModelSketch | EnsembleSketch

export type Condition =
  /** The element of a tensor compared with a literal. */
  | {
      readonly kind: 'compare'
      readonly ref: Ref
      readonly index: number
      readonly operator: '<' | '>' | '=='
      readonly literal: number | string | boolean
      readonly datatype: SketchDatatype
    }
  /** An integer divided by the element of a tensor. */
  | { readonly kind: 'divide'; readonly ref: Ref; readonly index: number }
  | { readonly kind: 'size'; readonly ref: Ref; readonly least: number }
  | { readonly kind: 'parameter'; readonly name: string; readonly value: string }
  | { readonly kind: 'has'; readonly name: string }
  | { readonly kind: 'and' | 'or'; readonly of: readonly [Condition, Condition] }
  | { readonly kind: 'not'; readonly of: Condition }

export interface StepInput {
  readonly name: string
  /** Several for `firstOf`. */
  readonly from: readonly Ref[] | Value
  readonly isItem: boolean
}

export interface ForEachSketch {
  readonly count?: Ref
  readonly maxItems: number
  readonly maxParallel: number
  readonly gather: 'Stack' | 'Concat'
  readonly itemDefault?: ReadonlyMap<string, Value>
}

export interface LoopSketch {
  readonly carry: readonly { readonly input: string; readonly output: string }[]
  readonly until?: Condition
  readonly maxIterations: number
}

export interface RetrySketch {
  readonly maxRetries: number
  readonly retryOn: readonly string[]
  readonly backoffMs: number
  readonly budgetPercent: number
}

export type OnErrorSketch =
  | { readonly fallback: CalleeSketch; readonly timeoutMs?: number }
  | { readonly values: ReadonlyMap<string, Value> }

export interface StepSketch {
  readonly name: string
  readonly callee: CalleeSketch
  readonly inputs: readonly StepInput[]
  readonly parameters?: Readonly<Record<string, string>>
  readonly when?: Condition
  readonly forEach?: ForEachSketch
  readonly loop?: LoopSketch
  readonly timeoutMs?: number
  readonly retry?: RetrySketch
  /** Time after which a second replica is asked too, of every request. */
  readonly hedgeMs?: number
  readonly mayRunTwice?: boolean
  readonly onError?: OnErrorSketch
  /** Names of the steps that end before, if they run. */
  readonly after: readonly string[]
  /** Outputs that something reads. */
  readonly asked: readonly string[]
}

/** A request to a graph. */
export interface RequestSketch {
  readonly inputs: ReadonlyMap<string, Value>
  readonly parameters: ReadonlyMap<string, string>
  /** Empty for all. */
  readonly outputs: readonly string[]
  readonly deadlineMs?: number
}

/** A graph with all that it calls. */
export interface GraphSketch {
  readonly seed: number
  readonly top: EnsembleSketch
  readonly models: readonly ModelSketch[]
  /** Ensembles, each behind those that it runs. */
  readonly ensembles: readonly EnsembleSketch[]
  /** Longest time of an answer, in milliseconds. */
  readonly slowestMs: number
}

/** Lists the tensors that a condition reads. */
export function readsOf(condition: Condition | undefined): readonly Ref[] {
  if (condition === undefined) return []
  if (condition.kind === 'not') return readsOf(condition.of)
  if (condition.kind === 'and' || condition.kind === 'or') return condition.of.flatMap(readsOf)
  return 'ref' in condition ? [condition.ref] : []
}

/** Lists the tensors that feed a step. */
export function fedBy({ inputs }: Pick<StepSketch, 'inputs'>): readonly Ref[] {
  return inputs.flatMap(({ from }) => ('datatype' in from ? [] : from))
}

/** Lists the tensors of the ensemble for which a step waits. */
export function waitsFor(step: StepSketch): readonly Ref[] {
  const { name, when, loop, forEach } = step
  const own = (ref: Ref): boolean => ref.startsWith(`${name}.`)
  const controls = [...readsOf(when), ...readsOf(loop?.until).filter((ref) => !own(ref))]
  return [...fedBy(step), ...controls, ...(forEach?.count === undefined ? [] : [forEach.count])]
}
