import { assert, ServeError } from '@tutti/errors'
import {
  isDecoupled,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  responseCacheFault,
} from '@tutti/model-config'
import type { CallRules } from '../call-rules.ts'
import { addFallbacks, fallbackConfig } from '../check/add-fallbacks.ts'
import { findCallFaults } from '../check/find-call-faults.ts'
import { type ConfigOfStep, findTensorFaults } from '../check/find-tensor-faults.ts'
import { tensorText } from '../check/triton-texts.ts'
import { validateGraph } from '../check/validate-graph.ts'
import type { Graph, GraphStep, Source } from '../graph.ts'
import { type LookupModel, resolveComposingModels } from './composing-models.ts'
import { labelTensors } from './decouple-labels.ts'
import type { EnsemblePlan, PlanEnsembleTensor, PlanStep, PlanTensor } from './ensemble-plan.ts'
import { runGraph } from './run-graph.ts'
import { checkDependencies } from './step-dependencies.ts'

/**
 * Checks an ensemble against the models that it composes, and compiles it into a plan.
 *
 * @param o.config - inputs, outputs and batch size of the ensemble; its `ensemble_scheduling` is not read.
 * @param o.lookup - finds a model; undefined for a name that is in no repository.
 * @throws ServeError ENSEMBLE_INVALID or ENSEMBLE_DEPENDENCY, with Triton's text where Triton has the rule.
 * @see triton-semantics 1.1 to 1.3
 */
export function planEnsemble(o: {
  readonly config: ModelConfig
  readonly graph: Graph
  readonly lookup: LookupModel
}): EnsemblePlan {
  const { config, graph } = o
  validateGraph(config, graph)
  const configOf = resolveComposingModels(config, graph, o.lookup)
  const { definitions, faults } = findTensorFaults({
    config,
    graph: addFallbacks(graph, configOf).graph,
    configOf,
  })
  const [fault] = faults
  if (fault !== undefined) {
    throw invalid(config, tensorText(config, fault), { model: fault.model.name })
  }
  const table = new TensorTable(config, graph)
  const drafts = graph.steps.map((step, index) => ({
    ...draftStep(step, index, { config, configOf, table }),
    index,
  }))
  checkDependencies(config.name, graph, drafts)
  const outputs = config.output.map((output, i) => {
    const from = graph.outputs[i]?.from
    assert(from !== undefined, `the graph of ${config.name} has no output ${output.name}`)
    return ensembleTensor(output, table.indexOf(from))
  })
  const labels = labelTensors({ config, definitions, tensors: table.all, steps: drafts, outputs })
  const steps = drafts.map((draft) => ({ ...draft, label: labels[draft.reads[0] ?? -1] ?? 0 }))
  const tensors = table.all.map((tensor, i) => ({ ...tensor, label: labels[i] ?? 0 }))
  const decoupled = steps.some((step) => step.decoupled)
  if (decoupled && config.response_cache?.enable === true) {
    throw invalid(config, responseCacheFault(config.name, "'decoupled' transaction policy"))
  }
  return {
    name: config.name,
    config,
    graph,
    maxBatchSize: config.max_batch_size,
    decoupled,
    steps,
    tensors,
    inputs: config.input.map((input) => {
      return ensembleTensor(input, table.indexOf({ kind: 'input', name: input.name }))
    }),
    outputs,
    whole: runGraph({ steps, tensors }, outputs),
  }
}

/** Returns the configuration of an ensemble that clients get. `decoupled` is computed, whatever was written. */
export function completeEnsembleConfig(plan: EnsemblePlan): ModelConfig {
  return { ...plan.config, model_transaction_policy: { decoupled: plan.decoupled } }
}

/** Gives tensors their indexes: those of the ensemble's inputs, then those that steps make. */
class TensorTable {
  readonly all: Omit<PlanTensor, 'label'>[] = []
  readonly #inputs = new Map<string, number>()
  /** Indexes by output; one map per step. */
  readonly #made: readonly ReadonlyMap<string, number>[]

  constructor({ input }: ModelConfig, { steps }: Graph) {
    for (const name of new Set(input.map((one) => one.name))) {
      this.#inputs.set(name, this.all.push({ name, step: undefined }) - 1)
    }
    this.#made = steps.map(
      ({ outputs }, step) =>
        new Map(
          outputs.map(({ name, tensor }) => [name, this.all.push({ name: tensor, step }) - 1]),
        ),
    )
  }

  indexOf(source: Source): number {
    const index =
      source.kind === 'made'
        ? this.#made[source.step]?.get(source.output)
        : this.#inputs.get(source.name)
    assert(index !== undefined, `nothing makes the tensor of ${JSON.stringify(source)}`)
    return index
  }
}

const NO_RULES: CallRules = {}

function draftStep(
  step: GraphStep,
  index: number,
  o: {
    readonly config: ModelConfig
    readonly configOf: ConfigOfStep
    readonly table: TensorTable
  },
): Omit<PlanStep, 'label' | 'index'> {
  const { config, configOf, table } = o
  const model = configOf(step)
  assert(model !== undefined, `model ${step.model} was not looked up`)
  const inputs = step.inputs.map(({ name, from }) => {
    const declared = model.input.find((input) => input.name === name)
    assert(declared !== undefined, `model ${model.name} has no input ${name}`)
    const { dims, optional } = declared
    return { name, tensor: table.indexOf(from), dims, optional }
  })
  const [fault] = findCallFaults(step.call, model, fallbackConfig(step, configOf))
  if (fault !== undefined) {
    throw invalid(config, `in ensemble '${config.name}', ${fault.field}: ${fault.text}`)
  }
  return {
    name: step.name,
    model: step.model,
    version: step.version,
    isBatched: model.max_batch_size > 0,
    decoupled: isDecoupled(model),
    inputs,
    outputs: step.outputs.map(({ name }) => {
      return { name, tensor: table.indexOf({ kind: 'made', step: index, output: name }) }
    }),
    reads: [...new Set(inputs.map((input) => input.tensor))],
    outputNames: step.outputs.map(({ name }) => name),
    dependsOn: step.after,
    call: step.call ?? NO_RULES,
  }
}

function ensembleTensor(declared: ModelInput | ModelOutput, tensor: number): PlanEnsembleTensor {
  const { name, dims, reshape } = declared
  const optional = 'optional' in declared && declared.optional
  return { name, tensor, dims, reshape: reshape?.shape, optional }
}

function invalid(
  { name }: ModelConfig,
  text: string,
  details: Readonly<Record<string, string>> = {},
): ServeError {
  return new ServeError('ENSEMBLE_INVALID', text, { details: { ensemble: name, ...details } })
}
