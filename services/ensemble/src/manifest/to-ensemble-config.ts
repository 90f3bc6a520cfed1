import {
  type EnsembleManifest,
  type EnsembleRules,
  type EnsembleSpec,
  modelNameOf,
  toMilliseconds,
} from '@tutti/api'
import { type EnsembleStep, type ModelConfig, parseJsonConfig } from '@tutti/model-config'
import { DATATYPES } from '@tutti/tensor'
import { findStepCycle } from '../step-dependencies.ts'
import { type ReportFault, raise, refused } from './ensemble-fault.ts'
import { type EnsembleGraph, type FindModel, modelOfStep, resolveGraph } from './ensemble-graph.ts'
import { sourceKeyOf, stepPath, type TensorSource } from './ensemble-references.ts'
import { nameTensors, type TensorNames } from './tensor-names.ts'

/** An Ensemble in Triton's terms, with the graph that tells where in the manifest something is written. */
export interface EnsembleConversion {
  /** Configuration with `ensemble_scheduling`. An output without a datatype has TYPE_INVALID if its model is not known. */
  readonly config: ModelConfig
  /** Rules of the Ensemble that config.pbtxt cannot express. */
  readonly rules: EnsembleRules
  readonly graph: EnsembleGraph
  readonly warnings: readonly string[]
}

/**
 * Converts an Ensemble to a ModelConfig with `ensemble_scheduling`, and to the rules that a ModelConfig cannot express.
 * References are resolved.
 *
 * @param findModel - finds completed configurations by served name, for the shorthand `inputs: [STEP]` and for outputs without
 *   a type. By default none is known.
 * @param report - takes each fault, whose text begins with the path of the field. Parts with a fault are left out. Default:
 *   throws.
 * @throws ServeError ENSEMBLE_INVALID for the first fault, if `report` is absent.
 */
export function toEnsembleConfig(
  manifest: EnsembleManifest,
  findModel: FindModel = () => undefined,
  report: ReportFault = raise,
): EnsembleConversion {
  const { spec } = manifest
  const { timeout, maxInFlightRequests } = spec
  const graph = resolveGraph(spec, findModel, report)
  const names = nameTensors(graph, report)
  const maps = spec.steps.map((_, index) => ({
    input_map: inputMap(graph, names, index),
    output_map: outputMap(graph, names, index),
  }))
  for (const fault of stepFaults(graph, maps)) report(fault)
  const config = parseJsonConfig({
    name: modelNameOf(manifest),
    platform: 'ensemble',
    max_batch_size: spec.maxBatchSize ?? 0,
    input: spec.inputs.map(({ name, datatype, shape, optional }) => ({
      name,
      data_type: DATATYPES[datatype].config,
      dims: shape,
      optional: optional ?? false,
    })),
    output: spec.outputs.map(({ name }, i) => ({ name, ...inferOutput(graph, i, findModel) })),
    ensemble_scheduling: {
      step: spec.steps.map((step, index) => ({
        model_name: modelOfStep(step),
        model_version: step.modelRef?.version ?? -1,
        ...maps[index],
      })),
    },
  })
  for (const fault of cycleFaults(graph)) report(fault)
  const rules: EnsembleRules = {
    stepNames: spec.steps.map((step) => step.name),
    dependsOn: graph.dependsOn,
    ...hedgesOf(spec),
    ...(timeout !== undefined && { timeoutMs: toMilliseconds(timeout) }),
    ...(maxInFlightRequests !== undefined && { maxInFlightRequests }),
  }
  return { config, rules, graph, warnings: unusedOutputs(graph, names) }
}

const MAX_PERCENT = 5

function hedgesOf({ steps }: EnsembleSpec): Pick<EnsembleRules, 'hedges'> {
  const hedges = steps.flatMap(({ hedge }, step) => {
    if (hedge === undefined) return []
    const { after, maxPercent = MAX_PERCENT } = hedge
    return [{ step, afterMs: toMilliseconds(after), maxPercent }]
  })
  return hedges.length === 0 ? {} : { hedges }
}

function inputMap(graph: EnsembleGraph, names: TensorNames, index: number) {
  const reads = graph.reads[index] ?? new Map()
  return Object.fromEntries(
    [...reads].map(([input, { source }]) => [input, names.get(sourceKeyOf(source)) ?? '']),
  )
}

/** Lists named outputs in the order of `outputMap`, then those that only references name. No request asks for the others. */
function outputMap({ declared }: EnsembleGraph, names: TensorNames, index: number) {
  const prefix = sourceKeyOf({ kind: 'made', step: index, output: '' })
  const referenced = [...names.keys()].filter((key) => key.startsWith(prefix))
  const outputs = new Set([
    ...(declared[index]?.keys() ?? []),
    ...referenced.map((key) => key.slice(prefix.length)),
  ])
  const entries = [...outputs].flatMap((output) => {
    const name = names.get(prefix + output)
    return name === undefined ? [] : [[output, name] as const]
  })
  return Object.fromEntries(entries)
}

type StepMaps = Pick<EnsembleStep, 'input_map' | 'output_map'>

function* stepFaults({ spec, partial, meant }: EnsembleGraph, maps: readonly StepMaps[]) {
  for (const [index, { input_map, output_map }] of maps.entries()) {
    const path = stepPath(spec, index)
    if (Object.keys(input_map).length === 0 && !partial.has(index)) {
      const problem = 'got no inputs, want inputMap or inputs: a step reads something'
      yield refused('MissingInput', path, problem)
    }
    if (Object.keys(output_map).length > 0 || meant.has(index)) continue
    const problem =
      'nothing reads what it makes; want one of its outputs in `outputs` or read by a step, or no such step'
    yield refused('UnreachableStep', path, problem)
  }
}

function unusedOutputs({ spec, declared }: EnsembleGraph, names: TensorNames): readonly string[] {
  return declared.flatMap((outputs, step) =>
    [...outputs].flatMap(([output, name]) =>
      names.has(sourceKeyOf({ kind: 'made', step, output }))
        ? []
        : [`${stepPath(spec, step)}.outputMap[${output}]: nothing reads '${name}'`],
    ),
  )
}

/** Finds one cycle after another, until none is left if the first step of each waited for nothing. */
function* cycleFaults({ spec, reads, dependsOn }: EnsembleGraph) {
  const waits: (readonly number[])[] = reads.map((fed, index) => [
    ...[...fed.values()].flatMap(({ source }) => (source.kind === 'made' ? source.step : [])),
    ...(dependsOn[index] ?? []),
  ])
  for (;;) {
    const cycle = findStepCycle(waits) ?? []
    const [first] = cycle
    if (first === undefined) return
    const way = [...cycle, first].map((index) => spec.steps[index]?.name).join(' -> ')
    yield refused('CycleDetected', stepPath(spec, first), `steps wait for one another: ${way}`)
    waits[first] = []
  }
}

/** Infers the type of `outputs[index]` as protobuf JSON: its own, else that of its tensor; undefined while that is not known. */
function inferOutput({ spec, outputs }: EnsembleGraph, index: number, findModel: FindModel) {
  const source = outputs[index]?.source
  const input = source?.kind === 'input' && spec.inputs.find(({ name }) => name === source.name)
  const { datatype, shape } = { ...input, ...spec.outputs[index] }
  if (datatype !== undefined) return { data_type: DATATYPES[datatype].config, dims: shape }
  return source?.kind === 'made' ? madeType(spec, source, findModel) : undefined
}

/** Returns the type of a made tensor. An ensemble without batches gives out the batch dimension of a model that has one. */
function madeType(
  spec: EnsembleSpec,
  { step: index, output }: Extract<TensorSource, { kind: 'made' }>,
  findModel: FindModel,
) {
  const step = spec.steps[index]
  const config = step && findModel(modelOfStep(step))
  const made = config?.output.find(({ name }) => name === output)
  const isUnbatched = (spec.maxBatchSize ?? 0) === 0 && (config?.max_batch_size ?? 0) > 0
  return made && { data_type: made.data_type, dims: isUnbatched ? [-1, ...made.dims] : made.dims }
}
