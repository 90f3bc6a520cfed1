import type { ModelConfig } from '@tutti/model-config'
import { hintOf, refused } from './ensemble-fault.ts'
import { EnsembleReferences, stepPath, type TensorSource } from './ensemble-references.ts'
import type { EnsembleSpec, EnsembleStepSpec } from './ensemble-spec.ts'

/** The completed configuration of a served name; undefined while it is not known. */
export type FindModel = (servedName: string) => ModelConfig | undefined

/** Something that reads a tensor. */
export interface GraphRead {
  readonly source: TensorSource
  /** Where it is written. */
  readonly path: string
}

/** An Ensemble with its references resolved. */
export interface EnsembleGraph {
  readonly spec: EnsembleSpec
  /** By step: the model's input -> what feeds it. */
  readonly reads: readonly ReadonlyMap<string, GraphRead>[]
  /** In the order of `spec.outputs`. */
  readonly outputs: readonly GraphRead[]
  /** By step: the model's output -> the name that `outputMap` gives it. */
  readonly declared: readonly ReadonlyMap<string, string>[]
  /** By step: indexes of steps. */
  readonly dependsOn: readonly (readonly number[])[]
}

/** The served name of what a step runs. */
export function modelOfStep(step: EnsembleStepSpec): string {
  return step.modelRef?.name ?? step.ensembleRef?.name ?? ''
}

/**
 * Resolves every reference of an Ensemble.
 *
 * @param findModel - asked only for steps that a shorthand `inputs: [STEP]` is about.
 * @throws ServeError ENSEMBLE_INVALID with a fault.
 */
export function resolveGraph(spec: EnsembleSpec, findModel: FindModel): EnsembleGraph {
  const references = new EnsembleReferences(spec)
  const reads = spec.steps.map((step, index) => {
    const mapped = readInputMap(spec, references, index)
    return addShorthands({ spec, references, findModel, index, mapped }, step.inputs ?? [])
  })
  return {
    spec,
    reads,
    outputs: spec.outputs.map(({ from }, i) => {
      const path = `outputs[${i}].from`
      return { source: references.resolve(from, path, 'made'), path }
    }),
    declared: spec.steps.map((step) => new Map(Object.entries(step.outputMap ?? {}))),
    dependsOn: spec.steps.map((step, index) =>
      (step.dependsOn ?? []).map((name, i) => {
        const path = `${stepPath(spec, index)}.dependsOn[${i}]`
        const other = references.step(name, path)
        if (other !== index) return other
        throw refused('CycleDetected', path, `the step '${name}' would wait for itself`)
      }),
    ),
  }
}

function readInputMap(
  spec: EnsembleSpec,
  references: EnsembleReferences,
  index: number,
): Map<string, GraphRead> {
  const entries = Object.entries(spec.steps[index]?.inputMap ?? {})
  return new Map(
    entries.map(([input, reference]) => {
      const path = `${stepPath(spec, index)}.inputMap[${input}]`
      if (!references.isKnown(reference) && references.isKnown(input)) {
        const problem = `no ensemble tensor '${reference}', but '${input}' is one: inputMap goes from the model's input to the tensor that feeds it; want {${reference}: ${input}}`
        throw refused('UnknownTensor', path, problem)
      }
      return [input, { source: references.resolve(reference, path, 'input'), path }]
    }),
  )
}

interface Shorthands {
  readonly spec: EnsembleSpec
  readonly references: EnsembleReferences
  readonly findModel: FindModel
  readonly index: number
  readonly mapped: Map<string, GraphRead>
}

function addShorthands(o: Shorthands, shorthands: readonly string[]): Map<string, GraphRead> {
  const { spec, references, index, mapped } = o
  const all = new Map(mapped)
  for (const [i, shorthand] of shorthands.entries()) {
    const path = `${stepPath(spec, index)}.inputs[${i}]`
    const dot = shorthand.indexOf('.')
    const from = stepOfShorthand(references, shorthand, path)
    const outputs = dot === -1 ? commonNames(o, from, path) : [shorthand.slice(dot + 1)]
    for (const output of outputs) {
      const other = all.get(output)
      // What inputMap says is meant to differ from what the whole step would feed.
      if (dot === -1 && mapped.has(output)) continue
      if (other !== undefined) {
        const problem = `the input '${output}' is fed by ${other.path} already`
        throw refused('MultipleProducers', path, problem)
      }
      all.set(output, { source: { kind: 'made', step: from, output }, path })
    }
  }
  return all
}

/** @throws ServeError with the fault UnknownStep, which sends a tensor of the ensemble to `inputMap`. */
function stepOfShorthand(references: EnsembleReferences, shorthand: string, path: string): number {
  const dot = shorthand.indexOf('.')
  const step = dot === -1 ? shorthand : shorthand.slice(0, dot)
  if (!references.isStep(step) && references.isKnown(shorthand)) {
    const problem = `'${shorthand}' is an ensemble tensor, and inputs names steps or STEP.OUTPUT; want it in inputMap: {INPUT: ${shorthand}}, with the name of the model's input`
    throw refused('UnknownStep', path, problem)
  }
  return references.step(step, path)
}

/** The outputs of a step that have the name of an input of the step that reads them. */
function commonNames(o: Shorthands, from: number, path: string): readonly string[] {
  const [outputs, inputs] = [namesOf(o, from, 'output', path), namesOf(o, o.index, 'input', path)]
  const common = outputs.filter((name) => inputs.includes(name))
  if (common.length > 0) return common
  const problem = `no output of '${o.spec.steps[from]?.name}' has the name of an input; want inputMap${hintOf('', outputs)}`
  throw refused('UnknownTensor', path, problem)
}

function namesOf(
  { spec, findModel }: Shorthands,
  index: number,
  side: 'input' | 'output',
  path: string,
): readonly string[] {
  const step = spec.steps[index]
  const name = step === undefined ? '' : modelOfStep(step)
  const config = findModel(name)
  if (config !== undefined) return config[side].map((tensor) => tensor.name)
  const problem = `it is short for the tensors of '${name}', whose signature is not known yet; want it, or inputMap`
  throw refused('SchemaPending', path, problem)
}
