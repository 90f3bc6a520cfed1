import type { ModelConfig, ModelInput, ModelOutput } from '@tutti/model-config'
import { formatShape, fromConfigDatatype } from '@tutti/tensor'
import { define, findDifference, type TensorDefinition } from '../tensor-mapping.ts'
import { hintOf, refused } from './ensemble-fault.ts'
import { modelOfStep } from './ensemble-graph.ts'
import { keyOf, stepPath, type TensorSource } from './ensemble-references.ts'
import type { EnsembleConversion } from './to-ensemble-config.ts'

/** The first that names a tensor: everyone else is compared with it. */
interface Definer {
  readonly definition: TensorDefinition
  readonly label: string
}

type Models = ReadonlyMap<string, ModelConfig>

/**
 * Checks the maps of every step against the models, in the order in which `checkTensorMapping` does.
 *
 * @throws ServeError ENSEMBLE_INVALID with a fault that says where in the manifest it is written.
 */
export function judgeTensors(conversion: EnsembleConversion, models: Models): void {
  const { config, graph } = conversion
  const definers = new Map<string, Definer>()
  for (const [side, tensors] of [
    ['inputs', config.input],
    ['outputs', config.output],
  ] as const) {
    for (const [i, tensor] of tensors.entries()) {
      if (definers.has(tensor.name)) continue
      const label = `${side}[${i}](${tensor.name})`
      definers.set(tensor.name, { definition: define(config, tensor), label })
    }
  }
  for (const [index, step] of graph.spec.steps.entries()) {
    const model = models.get(modelOfStep(step))
    if (model === undefined) continue
    judgeBatch(conversion, model, index)
    judgeInputs({ conversion, model, index, definers })
    judgeOutputs({ conversion, model, index, definers })
  }
}

interface StepJudgement {
  readonly conversion: EnsembleConversion
  readonly model: ModelConfig
  readonly index: number
  readonly definers: Map<string, Definer>
}

function judgeBatch({ config, graph }: EnsembleConversion, model: ModelConfig, index: number) {
  if (model.max_batch_size === 0 || model.max_batch_size >= config.max_batch_size) return
  const problem = `got ${config.max_batch_size}, want at most ${model.max_batch_size}: '${model.name}' of ${stepPath(graph.spec, index)} takes no larger batches`
  throw refused('LimitExceeded', 'maxBatchSize', problem)
}

function judgeInputs(o: StepJudgement): void {
  const { conversion, model, index } = o
  const { spec, reads } = conversion.graph
  const fed = reads[index] ?? new Map()
  const names = model.input.map((input) => input.name)
  for (const [input, { path }] of fed) {
    if (names.includes(input)) continue
    const problem = `'${model.name}' has no input '${input}'${hintOf(input, names)}`
    throw refused('UnknownTensor', path, problem)
  }
  for (const input of model.input) {
    const read = fed.get(input.name)
    if (read !== undefined) {
      compare(o, { source: read.source, tensor: input, path: read.path, isRead: true })
    } else if (!input.optional) {
      const problem = `the input '${input.name}' of '${model.name}' is fed by nothing: want ${describe(model, input)} in inputMap`
      throw refused('MissingInput', stepPath(spec, index), problem)
    }
  }
}

function judgeOutputs(o: StepJudgement): void {
  const { conversion, model, index } = o
  const { config, graph } = conversion
  const step = config.ensemble_scheduling?.step[index]
  const names = model.output.map((output) => output.name)
  const unknown = Object.keys(step?.output_map ?? {}).find((output) => !names.includes(output))
  if (unknown !== undefined) {
    const path = pathOfOutput(conversion, index, unknown)
    const hint = outputHint(unknown, graph.declared[index]?.get(unknown), names)
    throw refused('UnknownTensor', path, `'${model.name}' has no output '${unknown}'${hint}`)
  }
  for (const name of Object.keys(step?.output_map ?? {})) {
    const tensor = model.output.find((output) => output.name === name)
    if (tensor === undefined) continue
    const source = { kind: 'made', step: index, output: name } as const
    const path = pathOfOutput(conversion, index, name)
    compare(o, { source, tensor, path, isRead: false })
  }
}

function outputHint(
  output: string,
  declared: string | undefined,
  names: readonly string[],
): string {
  return declared !== undefined && names.includes(declared)
    ? `; outputMap goes from the model's output to the ensemble's tensor: want {${declared}: ${output}}`
    : hintOf(output, names)
}

/** Where an output of a step is written: in its outputMap, else where it is read first. */
function pathOfOutput({ graph }: EnsembleConversion, step: number, output: string): string {
  if (graph.declared[step]?.has(output) === true) {
    return `${stepPath(graph.spec, step)}.outputMap[${output}]`
  }
  const key = keyOf({ kind: 'made', step, output })
  const reads = [...graph.reads.flatMap((fed) => [...fed.values()]), ...graph.outputs]
  return reads.find(({ source }) => keyOf(source) === key)?.path ?? stepPath(graph.spec, step)
}

function compare(
  { conversion, model, definers }: StepJudgement,
  o: {
    readonly source: TensorSource
    readonly tensor: ModelInput | ModelOutput
    readonly path: string
    readonly isRead: boolean
  },
): void {
  const { graph, names } = conversion
  const name = names.get(keyOf(o.source)) ?? ''
  const definition = define(model, o.tensor)
  const first = definers.get(name)
  if (first === undefined) {
    const label = o.isRead ? o.path : referenceTo(graph.spec, o.source)
    definers.set(name, { definition, label })
    return
  }
  const difference = findDifference(first.definition, definition)
  if (difference === undefined) return
  const reason = difference === 'datatype' ? 'DatatypeMismatch' : 'ShapeMismatch'
  const [own, other] = [show(definition), show(first.definition)]
  const problem = o.isRead
    ? `${own} expected, ${first.label} is ${other}`
    : `'${model.name}' makes ${own}, ${first.label} is ${other}`
  throw refused(reason, o.path, problem)
}

function referenceTo(spec: EnsembleConversion['graph']['spec'], source: TensorSource): string {
  if (source.kind === 'input') return source.name
  return `${spec.steps[source.step]?.name}.${source.output}`
}

function describe(model: ModelConfig, tensor: ModelInput | ModelOutput): string {
  return `a tensor ${show(define(model, tensor))}`
}

/** `FP32[-1,3]`, with the batch dimension if there is one. */
function show({ dataType, fullDims }: TensorDefinition): string {
  return `${fromConfigDatatype(dataType) ?? dataType}${formatShape(fullDims)}`
}
