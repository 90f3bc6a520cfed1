import type { EnsembleSpec, Constant as ManifestConstant } from '@tutti/api'
import { BUILTIN_HOST, findBuiltin } from '@tutti/builtins'
import type { ModelConfig } from '@tutti/model-config'
import { hintOf } from '../check/problem.ts'
import type { Constant } from '../constant.ts'
import type { OutputSource, Source } from '../graph.ts'
import { EnsembleReferences, type GraphRead, type Report, stepPath } from './ensemble-references.ts'
import { readControls, type StepControls } from './read-controls.ts'

/** Finds the completed configuration of a served name; returns undefined while it is not known. */
export type FindModel = (servedName: string) => ModelConfig | undefined

/** The value of an input of a step's model, or of an output of the ensemble. */
export interface ResolvedSource<From extends Source = Source> {
  readonly from: From
  /** Path of the field that names it. */
  readonly path: string
  /** The tensors among which it is; none for a constant. */
  readonly reads: readonly GraphRead[]
}

/** An Ensemble with its references resolved. References that were reported as faults are left out. */
export interface ResolvedSpec {
  readonly spec: EnsembleSpec
  /** Sources by input of the step's model; one map per step. */
  readonly inputs: readonly ReadonlyMap<string, ResolvedSource>[]
  /** The references of conditions, counts and loops; one for each step. */
  readonly controls: readonly StepControls[]
  /** Sources of the outputs, in the order of `spec.outputs`; undefined if reported. */
  readonly outputs: readonly (ResolvedSource<OutputSource> | undefined)[]
  /** Names that `outputMap` gives, by output of the step's model; one map per step. */
  readonly declared: readonly ReadonlyMap<string, string>[]
  /** Indexes of the steps that a step depends on; one list per step. */
  readonly dependsOn: readonly (readonly number[])[]
  /** Indexes of the steps of which a reference was reported, so that `reads` is not complete. */
  readonly partial: ReadonlySet<number>
  /** Inputs and steps that reported references may mean. They are not reported as unread. */
  readonly meant: EnsembleReferences['meant']
}

/** Lists all references to tensors. */
export function allReads(resolved: ResolvedSpec): readonly GraphRead[] {
  return [
    ...resolved.inputs.flatMap((_, step) => stepReads(resolved, step)),
    ...resolved.outputs.flatMap((output) => output?.reads ?? []),
  ]
}

/** Lists the references to tensors of one step. */
export function stepReads(
  { inputs, controls }: Pick<ResolvedSpec, 'inputs' | 'controls'>,
  step: number,
): readonly GraphRead[] {
  const fed = [...(inputs[step]?.values() ?? [])].flatMap(({ reads }) => reads)
  return [...fed, ...(controls[step]?.tensors.values() ?? [])]
}

/** The Model, Ensemble or built-in that a step, or its fallback, runs, as it is written. */
interface WrittenCallee {
  readonly modelRef?: { readonly name: string } | undefined
  readonly ensembleRef?: { readonly name: string } | undefined
  readonly builtin?: { readonly name: string; readonly model?: string | undefined } | undefined
}

/** Returns the served name of the Model or Ensemble that a step runs. For a built-in it is the Model beside which it runs, or BUILTIN_HOST. */
export function modelOfStep({ modelRef, ensembleRef, builtin }: WrittenCallee): string {
  const host = builtin && (builtin.model ?? BUILTIN_HOST)
  return modelRef?.name ?? ensembleRef?.name ?? host ?? ''
}

/** Returns the served names of the Models or Ensembles that a step may call: its own, and that of its fallback. */
export function modelsOfStep(
  step: WrittenCallee & {
    readonly onError?: { readonly fallback?: WrittenCallee | undefined } | undefined
  },
): readonly string[] {
  const { fallback } = step.onError ?? {}
  const all = [modelOfStep(step), ...(fallback === undefined ? [] : [modelOfStep(fallback)])]
  return all.filter((name) => name !== BUILTIN_HOST)
}

/**
 * Resolves every reference of an Ensemble, and reports the references that cannot be resolved.
 *
 * @param findModel - called only for steps that a shorthand `inputs: [STEP]` is about, or where a map seems to be turned round.
 */
export function resolveReferences(
  spec: EnsembleSpec,
  findModel: FindModel,
  report: Report,
): ResolvedSpec {
  const references = new EnsembleReferences(spec, report)
  const partial = new Set<number>()
  const steps = spec.steps.map((_, index) => ({
    spec,
    references,
    findModel,
    report,
    index,
    partial,
  }))
  return {
    spec,
    inputs: steps.map(readStep),
    controls: steps.map(readControls),
    outputs: spec.outputs.map((output, i) => {
      const path = `outputs[${i}].${output.from === undefined ? 'firstOf' : 'from'}`
      const named = output.from === undefined ? (output.firstOf ?? []) : [output.from]
      const reads = named.flatMap((reference) => {
        const source = references.resolve(reference, path, 'made')
        return source === undefined ? [] : { source, path }
      })
      return reads.length < named.length ? undefined : toSource(reads, path)
    }),
    declared: spec.steps.map((step) => new Map(Object.entries(step.outputMap ?? {}))),
    dependsOn: spec.steps.map((step, index) =>
      (step.dependsOn ?? []).flatMap((name, i) => {
        const path = `${stepPath(spec, index)}.dependsOn[${i}]`
        const other = references.step(name, path)
        if (other !== index) return other ?? []
        report('CycleDetected', path, `the step '${name}' would wait for itself`)
        return []
      }),
    ),
    partial,
    meant: references.meant,
  }
}

interface StepReads {
  readonly spec: EnsembleSpec
  readonly references: EnsembleReferences
  readonly findModel: FindModel
  readonly report: Report
  readonly index: number
  readonly partial: Set<number>
}

/** Makes the source of one tensor, or of several of which the first counts. */
function toSource(
  reads: readonly GraphRead[],
  path: string,
): ResolvedSource<OutputSource> | undefined {
  const tensors = reads.map(({ source }) => source)
  const [only] = tensors
  if (only === undefined) return undefined
  return { from: tensors.length === 1 ? only : { kind: 'firstOf', tensors }, path, reads }
}

function readStep(o: StepReads): ReadonlyMap<string, ResolvedSource> {
  const step = o.spec.steps[o.index]
  const mapped = readMap(o, 'inputMap', step?.inputMap)
  const items = readMap(o, 'forEach.items', step?.forEach?.items)
  for (const [input, source] of [...readFirstOf(o), ...readConstants(o), ...items]) {
    const other = mapped.get(input)
    if (other === undefined) mapped.set(input, source)
    else
      o.report(
        'MultipleProducers',
        source.path,
        `the input '${input}' is fed by ${other.path} already`,
      )
  }
  const all = new Map(mapped)
  const shorthands = step?.inputs ?? []
  for (const [i, shorthand] of shorthands.entries()) addShorthand(o, { shorthand, i, mapped, all })
  return all
}

function readConstants({ spec, index }: StepReads): readonly [string, ResolvedSource][] {
  return Object.entries(spec.steps[index]?.constants ?? {}).map(([input, constant]) => {
    const path = `${stepPath(spec, index)}.constants[${input}]`
    return [input, { from: { kind: 'constant', constant: toConstant(constant) }, path, reads: [] }]
  })
}

/** Converts a constant of a manifest, whose elements were checked. */
export function toConstant({ datatype, value, shape }: ManifestConstant): Constant {
  return { datatype, shape: shape ?? [value.length], value }
}

function readFirstOf(o: StepReads): readonly [string, ResolvedSource][] {
  const { spec, references, index } = o
  return Object.entries(spec.steps[index]?.firstOf ?? {}).flatMap(([input, named]) => {
    const path = `${stepPath(spec, index)}.firstOf[${input}]`
    const reads = named.flatMap((reference) => {
      const source = references.resolve(reference, path, 'input')
      return source === undefined ? [] : { source, path }
    })
    const source = toSource(reads, path)
    if (reads.length === named.length && source !== undefined) return [[input, source]]
    o.partial.add(index)
    return []
  })
}

/** @param map - from inputs of the model to the tensors that feed them. */
function readMap(
  o: StepReads,
  field: 'inputMap' | 'forEach.items',
  map: Readonly<Record<string, string>> | undefined,
): Map<string, ResolvedSource> {
  const { spec, references, index } = o
  const found = new Map<string, ResolvedSource>()
  for (const [input, reference] of Object.entries(map ?? {})) {
    const path = `${stepPath(spec, index)}.${field}[${input}]`
    const isTurned = !references.isKnown(reference) && references.isKnown(input)
    if (isTurned) references.mean(input)
    if (isTurned && !isInput(o, input)) {
      const problem = `no ensemble tensor '${reference}', but '${input}' is one: ${field} goes from the model's input to the tensor that feeds it; want {${reference}: ${input}}`
      o.report('UnknownTensor', path, problem)
      o.partial.add(index)
      continue
    }
    const source = references.resolve(reference, path, 'input')
    if (source === undefined) o.partial.add(index)
    else found.set(input, { from: source, path, reads: [{ source, path }] })
  }
  return found
}

/** Tells whether a step's model is known to have an input of this name. */
function isInput({ spec, findModel, index }: StepReads, name: string): boolean {
  const step = spec.steps[index]
  const model = step && findModel(modelOfStep(step))
  return model?.input.some((input) => input.name === name) === true
}

function addShorthand(
  o: StepReads,
  at: {
    readonly shorthand: string
    readonly i: number
    readonly mapped: ReadonlyMap<string, ResolvedSource>
    readonly all: Map<string, ResolvedSource>
  },
): void {
  const { shorthand, mapped, all } = at
  const path = `${stepPath(o.spec, o.index)}.inputs[${at.i}]`
  const dot = shorthand.indexOf('.')
  const from = stepOfShorthand(o, shorthand, path)
  const named = dot === -1 ? undefined : shorthand.slice(dot + 1)
  const outputs = from === undefined || named !== undefined ? [] : commonNames(o, from, path)
  if (from === undefined || outputs === undefined) {
    if (from !== undefined) o.references.mean(from)
    o.partial.add(o.index)
    return
  }
  for (const output of named === undefined ? outputs : [named]) {
    const other = all.get(output)
    // An input that inputMap names is meant to differ from what the whole step would feed.
    if (named === undefined && mapped.has(output)) continue
    if (other === undefined) {
      const source = { kind: 'made', step: from, output } as const
      all.set(output, { from: source, path, reads: [{ source, path }] })
      continue
    }
    const problem = `the input '${output}' is fed by ${other.path} already`
    o.report('MultipleProducers', path, problem)
    o.references.mean(from)
  }
}

/** Reports a name that is no step; a tensor of the ensemble it sends to `inputMap`. */
function stepOfShorthand(o: StepReads, shorthand: string, path: string): number | undefined {
  const { references } = o
  const dot = shorthand.indexOf('.')
  const step = dot === -1 ? shorthand : shorthand.slice(0, dot)
  if (references.isStep(step) || !references.isKnown(shorthand)) return references.step(step, path)
  const problem = `'${shorthand}' is an ensemble tensor, and inputs names steps or STEP.OUTPUT; want it in inputMap: {INPUT: ${shorthand}}, with the name of the model's input`
  o.report('UnknownStep', path, problem)
  references.mean(shorthand)
  return undefined
}

/** Finds the outputs of a step that have the name of an input of the step that reads them; undefined if that was reported. */
function commonNames(o: StepReads, from: number, path: string): readonly string[] | undefined {
  const outputs = namesOf(o, from, 'output', path)
  const inputs = namesOf(o, o.index, 'input', path)
  if (outputs === undefined || inputs === undefined) return undefined
  const common = outputs.filter((name) => inputs.includes(name))
  if (common.length > 0) return common
  const problem = `no output of '${o.spec.steps[from]?.name}' has the name of an input; want inputMap${hintOf('', outputs)}`
  o.report('UnknownTensor', path, problem)
  return undefined
}

function namesOf(
  { spec, findModel, report }: StepReads,
  index: number,
  side: 'input' | 'output',
  path: string,
): readonly string[] | undefined {
  const step = spec.steps[index]
  if (step?.builtin !== undefined) {
    const builtin = findBuiltin(step.builtin.name)
    // Its signature follows from what feeds it, which is what is looked for.
    const named = builtin && Object.keys(side === 'input' ? builtin.inputs : builtin.outputs)
    // Such as `input0, input1, …`, where there may be any number.
    return named?.flatMap((names) => names.split(', '))
  }
  const name = step === undefined ? '' : modelOfStep(step)
  const config = findModel(name)
  if (config !== undefined) return config[side].map((tensor) => tensor.name)
  const problem = `it is short for the tensors of '${name}', whose signature is not known yet; want it, or inputMap`
  report('SchemaPending', path, problem)
  return undefined
}
