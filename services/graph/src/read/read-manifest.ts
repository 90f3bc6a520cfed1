import {
  type EnsembleManifest,
  type EnsembleSpec,
  type EnsembleStepSpec,
  modelNameOf,
  toMilliseconds,
} from '@tutti/api'
import { parseBuiltin } from '@tutti/builtins'
import { type ModelConfig, parseJsonConfig } from '@tutti/model-config'
import { DATATYPES } from '@tutti/tensor'
import { describeStructure } from '../check/describe-faults.ts'
import type { Doubts } from '../check/doubts.ts'
import { findStructureFaults } from '../check/find-structure-faults.ts'
import type { ConfigOfStep } from '../check/find-tensor-faults.ts'
import { type Problem, toRefusal } from '../check/problem.ts'
import type { Words } from '../check/words.ts'
import { BuiltinOptions, type Graph, type GraphStep, type OutputSource } from '../graph.ts'
import { printScheduling } from '../print-scheduling.ts'
import { signatureOf } from '../step-signature.ts'
import { typeBuiltins } from '../type-builtins.ts'
import { type KnownSource, type Report, sourceKeyOf, stepPath } from './ensemble-references.ts'
import { ManifestWords } from './manifest-words.ts'
import { nameTensors, type TensorNames } from './name-tensors.ts'
import { readCall } from './read-call.ts'
import type { StepControls } from './read-controls.ts'
import { readRepeat } from './read-repeat.ts'
import {
  type FindModel,
  modelOfStep,
  type ResolvedSpec,
  resolveReferences,
  toConstant,
} from './resolve-references.ts'

/** An Ensemble as it was read. What has a problem is left out of the graph. */
export interface ManifestReading {
  /** Configuration that clients get. An output without a datatype has TYPE_INVALID while its model is not known. */
  readonly config: ModelConfig
  readonly graph: Graph
  readonly problems: readonly Problem[]
  readonly doubts: Doubts
  readonly words: Words
  /** Words for the fallbacks of the steps, by the index of the step. */
  readonly fallbackWords: Words
  readonly warnings: readonly string[]
}

/**
 * Reads an Ensemble.
 *
 * @param findModel - finds completed configurations by served name, for the shorthand `inputs: [STEP]` and for outputs without
 *   a type. By default none is known.
 */
export function readManifest(
  manifest: EnsembleManifest,
  findModel: FindModel = () => undefined,
): ManifestReading {
  const { spec } = manifest
  const problems: Problem[] = []
  const report: Report = (reason, path, message) => void problems.push({ reason, path, message })
  const resolved = resolveReferences(spec, findModel, report)
  const names = nameTensors(resolved, report)
  const graph = toGraph(resolved, names)
  const known = {
    name: modelNameOf(manifest),
    platform: 'ensemble',
    max_batch_size: spec.maxBatchSize ?? 0,
    input: spec.inputs.map(({ name, datatype, shape, optional }) => ({
      name,
      data_type: DATATYPES[datatype].config,
      dims: shape,
      optional: optional ?? false,
    })),
  }
  const modelOf: ConfigOfStep = ({ model }) => findModel(model)
  const { configOf } = typeBuiltins({ config: parseJsonConfig(known), graph, modelOf })
  const output = spec.outputs.map(({ name }, i) => ({
    name,
    ...inferOutput(resolved, i, (index) => typeOfStep(graph.steps[index], configOf)),
  }))
  const config = parseJsonConfig({ ...known, output })
  const { meant, partial } = resolved
  return {
    config: { ...config, ensemble_scheduling: printScheduling(graph) },
    graph,
    problems,
    doubts: {
      tensors: new Set([...meant].filter((one) => typeof one === 'string')),
      steps: new Set([...meant].filter((one) => typeof one === 'number')),
      partial,
    },
    words: new ManifestWords(resolved, config),
    fallbackWords: new ManifestWords(resolved, config, { isFallback: true }),
    warnings: unusedOutputs(resolved, names),
  }
}

/**
 * Reads an Ensemble that is to have no problem which the manifest alone shows.
 *
 * @throws ServeError ENSEMBLE_INVALID for the first one.
 */
export function readValidManifest(
  manifest: EnsembleManifest,
  findModel?: FindModel,
): ManifestReading {
  const reading = readManifest(manifest, findModel)
  const { problems, config, graph, doubts, words } = reading
  const [problem] = problems
  if (problem !== undefined) throw toRefusal(problem)
  const [fault] = findStructureFaults(config, graph, doubts)
  if (fault !== undefined) throw toRefusal(describeStructure(fault, words))
  return reading
}

const NO_CONTROLS: StepControls = { tensors: new Map(), own: new Map(), carry: new Map() }

function toGraph(resolved: ResolvedSpec, names: TensorNames): Graph {
  const { spec, inputs, controls, outputs, dependsOn } = resolved
  const { timeout, maxInFlightRequests } = spec
  return {
    steps: spec.steps.map((step, index): GraphStep => {
      const call = readCall(step)
      const { when, parameters } = step
      const read = controls[index] ?? NO_CONTROLS
      return {
        name: step.name,
        model: modelOfStep(step),
        ...(step.builtin !== undefined && { builtin: readBuiltin(step.builtin) }),
        version: step.modelRef?.version ?? -1,
        inputs: [...(inputs[index] ?? [])].map(([name, { from }]) => ({ name, from })),
        ...(read.tensors.size > 0 && {
          controls: [...read.tensors].map(([name, { source: from }]) => ({ name, from })),
        }),
        ...(when !== undefined && { when }),
        ...readRepeat(step, read),
        ...(parameters !== undefined && { parameters }),
        outputs: outputsOf(resolved, names, index),
        after: [...new Set(dependsOn[index])],
        ...(call !== undefined && { call }),
      }
    }),
    outputs: spec.outputs.map(({ name, from = '', optional = false }, i) => {
      const source: OutputSource = outputs[i]?.from ?? { kind: 'unknown', name: from }
      return { name, from: source, ...(optional && { optional }) }
    }),
    ...defaultsOf(spec),
    maxInFlightPerStep: 0,
    ...(timeout !== undefined && { timeoutMs: toMilliseconds(timeout) }),
    ...(maxInFlightRequests !== undefined && { maxInFlightRequests }),
  }
}

/** Separates the options of a built-in from its name, and adds their defaults. What cannot be read stays for the checker. */
function readBuiltin(
  written: NonNullable<EnsembleStepSpec['builtin']>,
): NonNullable<GraphStep['builtin']> {
  const { name, model: _, ...given } = written
  const { step } = parseBuiltin({ ...given, name })
  return { name, options: BuiltinOptions.parse(step?.options ?? given) }
}

function defaultsOf({ inputs }: EnsembleSpec): Pick<Graph, 'defaults'> {
  const defaults = inputs.flatMap(({ name, default: value }) =>
    value === undefined ? [] : [[name, toConstant(value)] as const],
  )
  return defaults.length === 0 ? {} : { defaults: Object.fromEntries(defaults) }
}

/** Lists named outputs in the order of `outputMap`, then those that only references name. No request asks for the others. */
function outputsOf(
  { declared }: ResolvedSpec,
  names: TensorNames,
  index: number,
): GraphStep['outputs'] {
  const prefix = sourceKeyOf({ kind: 'made', step: index, output: '' })
  const referenced = [...names.keys()].filter((key) => key.startsWith(prefix))
  const outputs = new Set([
    ...(declared[index]?.keys() ?? []),
    ...referenced.map((key) => key.slice(prefix.length)),
  ])
  return [...outputs].flatMap((name) => {
    const tensor = names.get(prefix + name)
    return tensor === undefined ? [] : [{ name, tensor }]
  })
}

function unusedOutputs({ spec, declared }: ResolvedSpec, names: TensorNames): readonly string[] {
  return declared.flatMap((outputs, step) =>
    [...outputs].flatMap(([output, name]) =>
      names.has(sourceKeyOf({ kind: 'made', step, output }))
        ? []
        : [`${stepPath(spec, step)}.outputMap[${output}]: nothing reads '${name}'`],
    ),
  )
}

/** Finds what a step runs, as the graph sees it; undefined while that is not known. */
type StepAt = (
  index: number,
) => { readonly config: ModelConfig; readonly isBuiltin: boolean } | undefined

function typeOfStep(step: GraphStep | undefined, configOf: ConfigOfStep): ReturnType<StepAt> {
  const config = step && signatureOf(step, configOf(step))
  return config && { config, isBuiltin: step?.builtin !== undefined }
}

/** Infers the type of `outputs[index]` as protobuf JSON: its own, else that of its tensor; undefined while that is not known. */
function inferOutput({ spec, outputs }: ResolvedSpec, index: number, stepAt: StepAt) {
  const source = outputs[index]?.reads[0]?.source
  const input = source?.kind === 'input' && spec.inputs.find(({ name }) => name === source.name)
  const { datatype, shape } = { ...input, ...spec.outputs[index] }
  if (datatype !== undefined) return { data_type: DATATYPES[datatype].config, dims: shape }
  return source?.kind === 'made' ? madeType(spec, source, stepAt) : undefined
}

/** Returns the type of a made tensor. An ensemble without batches gives out the batch dimension of a model that has one. */
function madeType(
  { maxBatchSize = 0 }: EnsembleSpec,
  { step: index, output }: Extract<KnownSource, { kind: 'made' }>,
  stepAt: StepAt,
) {
  const { config, isBuiltin } = stepAt(index) ?? {}
  const made = config?.output.find(({ name }) => name === output)
  if (config === undefined || made === undefined) return undefined
  const { data_type, dims } = made
  if (maxBatchSize === 0)
    return { data_type, dims: config.max_batch_size > 0 ? [-1, ...dims] : dims }
  // A built-in sees the batch dimension as one of its own.
  return { data_type, dims: isBuiltin === true ? dims.slice(1) : dims }
}
