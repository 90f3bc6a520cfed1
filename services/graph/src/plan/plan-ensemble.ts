import { toStepText } from '@tutti/builtins'
import { assert, ServeError } from '@tutti/errors'
import {
  isDecoupled,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  responseCacheFault,
} from '@tutti/model-config'
import type { Parameter, Parameters } from '@tutti/tensor'
import { type CallRules, RETRY_DEFAULTS } from '../call-rules.ts'
import { addFallbacks, fallbackConfig } from '../check/add-fallbacks.ts'
import { datatypesOf } from '../check/check-condition.ts'
import { describePlace } from '../check/condition-fault.ts'
import { findCallFaults } from '../check/find-call-faults.ts'
import { findConditionFaults } from '../check/find-condition-faults.ts'
import { findRepeatFaults } from '../check/find-repeat-faults.ts'
import {
  type ConfigOfStep,
  findTensorFaults,
  type TensorDefinitions,
} from '../check/find-tensor-faults.ts'
import { tensorText } from '../check/triton-texts.ts'
import { validateGraph } from '../check/validate-graph.ts'
import { compileCondition } from '../conditions.ts'
import { type Graph, type GraphStep, readsOf, type TensorSource, tensorsOf } from '../graph.ts'
import { signatureOf } from '../step-signature.ts'
import { typeBuiltins } from '../type-builtins.ts'
import {
  type ComposingModels,
  type LookupModel,
  resolveComposingModels,
} from './composing-models.ts'
import { ConstantTable } from './constants.ts'
import { labelTensors } from './decouple-labels.ts'
import type {
  EnsemblePlan,
  PlanEnsembleTensor,
  PlanStep,
  PlanStepConstant,
  PlanStepInput,
  PlanTensor,
} from './ensemble-plan.ts'
import { planForEach, planLoop } from './plan-repeat.ts'
import { runGraph } from './run-graph.ts'
import { checkDependencies } from './step-dependencies.ts'

/**
 * Checks an ensemble against the models that it composes, and compiles it into a plan.
 *
 * @param o.config - inputs, outputs and batch size of the ensemble; its `ensemble_scheduling` is not read.
 * @param o.lookup - finds a model; undefined for a name that is in no repository.
 * @param o.isPart - the graph is a part of one that was checked. What is absent there is not known here.
 * @throws ServeError ENSEMBLE_INVALID or ENSEMBLE_DEPENDENCY, with Triton's text where Triton has the rule.
 * @see triton-semantics 1.1 to 1.3
 */
export function planEnsemble(o: {
  readonly config: ModelConfig
  readonly graph: Graph
  readonly lookup: LookupModel
  readonly isPart?: true
}): EnsemblePlan {
  const { config, graph, isPart = false } = o
  validateGraph(config, graph)
  const models = resolveComposingModels(config, graph, o.lookup)
  const { modelOf, configOf, definitions } = checkSteps({ config, graph, isPart }, models)
  const table = new TensorTable(config, graph, configOf)
  const constants = new ConstantTable()
  const drafts = graph.steps.map((step, index) => ({
    ...draftStep(step, index, { config, configOf, modelOf, table, constants }),
    when: conditionOf(graph, step, definitions),
    forEach: step.forEach && planForEach(step.forEach),
    loop: step.loop && planLoop(step, { graph, definitions, model: modelOf(step) }),
    optionalOutputs: new Set(models.optionalOutputsOf(step)),
    index,
  }))
  checkDependencies(config.name, graph, drafts)
  const outputs = planOutputs(config, graph, table)
  const labels = labelTensors({ config, definitions, tensors: table.all, steps: drafts, outputs })
  const steps = drafts.map((draft) => ({ ...draft, label: labels[draft.reads[0] ?? -1] ?? 0 }))
  const tensors = table.all.map((tensor, i) => ({ ...tensor, label: labels[i] ?? 0 }))
  const inputs = config.input.map((input): PlanEnsembleTensor => {
    const tensor = table.indexOf({ kind: 'input', name: input.name })
    const value = graph.defaults?.[input.name]
    const byDefault = value === undefined ? {} : { default: constants.add(value) }
    return { ...ensembleTensor(input, [tensor]), optional: input.optional, ...byDefault }
  })
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
    constants: constants.all,
    inputs,
    outputs,
    whole: runGraph({ steps, tensors }, outputs),
  }
}

function planOutputs(
  config: ModelConfig,
  graph: Graph,
  table: TensorTable,
): readonly PlanEnsembleTensor[] {
  return config.output.map((output, i) => {
    const { from, optional = false } = graph.outputs[i] ?? {}
    assert(from !== undefined, `the graph of ${config.name} has no output ${output.name}`)
    const tensors = tensorsOf(from).map((tensor) => table.indexOf(tensor))
    return { ...ensembleTensor(output, tensors), optional }
  })
}

/**
 * Checks the steps against their models.
 *
 * @returns the models by step: as they are, and as the graph sees them; the types of all tensors.
 * @throws ServeError ENSEMBLE_INVALID
 */
function checkSteps(
  {
    config,
    graph,
    isPart,
  }: { readonly config: ModelConfig; readonly graph: Graph; readonly isPart: boolean },
  models: ComposingModels,
) {
  const { configOf: modelOf, faultsOf } = typeBuiltins({ config, graph, modelOf: models.configOf })
  for (const step of graph.steps) {
    const [wrong] = faultsOf(step)
    if (wrong === undefined) continue
    const text = `in ensemble ${config.name}, step '${step.name}', builtin.${wrong.path}: got ${wrong.got}, want ${wrong.want}`
    throw invalid(config, text)
  }
  const configOf = (step: GraphStep) => signatureOf(step, modelOf(step))
  const whole = addFallbacks(graph, modelOf).graph
  const { definitions, faults } = findTensorFaults({ config, graph: whole, configOf })
  const [fault] = faults
  if (fault !== undefined) {
    throw invalid(config, tensorText(config, fault), { model: fault.model.name })
  }
  if (isPart) return { modelOf, configOf, definitions }
  const optionalOutputsOf = (step: GraphStep) => models.optionalOutputsOf(step)
  const checked = { config, graph, configOf, modelOf, definitions, optionalOutputsOf }
  const [beyond] = [...findConditionFaults(checked), ...findRepeatFaults(checked)]
  if (beyond === undefined) return { modelOf, configOf, definitions }
  const text = `in ensemble ${config.name}, ${describePlace(graph, beyond.at)}: got ${beyond.got}, want ${beyond.want}`
  throw invalid(config, text)
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

  constructor(config: ModelConfig, { steps }: Graph, configOf: ConfigOfStep) {
    for (const input of config.input) {
      const { name, reshape, dims } = input
      if (this.#inputs.has(name)) continue
      // The steps see the reshaped tensor.
      const seen = { ...input, dims: reshape?.shape ?? dims }
      this.#inputs.set(name, this.#add(config, seen, { name, step: undefined }))
    }
    this.#made = steps.map((graphStep, step) => {
      const model = configOf(graphStep)
      assert(model !== undefined, `model ${graphStep.model} was not looked up`)
      return new Map(
        graphStep.outputs.map(({ name, tensor }) => {
          const declared = model.output.find((output) => output.name === name)
          assert(declared !== undefined, `model ${model.name} has no output ${name}`)
          return [name, this.#add(model, declared, { name: tensor, step })]
        }),
      )
    })
  }

  #add(
    { max_batch_size }: ModelConfig,
    { data_type: dataType, dims }: Pick<ModelOutput, 'data_type' | 'dims'>,
    tensor: Pick<PlanTensor, 'name' | 'step'>,
  ): number {
    const isBatched = max_batch_size > 0
    const whole = { ...tensor, dataType, dims: isBatched ? [-1, ...dims] : dims, isBatched }
    return this.all.push(whole) - 1
  }

  indexOf(source: TensorSource): number {
    const index =
      source.kind === 'made'
        ? this.#made[source.step]?.get(source.output)
        : this.#inputs.get(source.name)
    assert(index !== undefined, `nothing makes the tensor of ${JSON.stringify(source)}`)
    return index
  }
}

const NO_RULES: CallRules = {}
const { retryOn, backoffMs } = RETRY_DEFAULTS
/**
 * A built-in keeps nothing and changes nothing, so that one whose replica is lost runs again. A replica may have hundreds of items when
 * it is lost, so no budget bounds that.
 */
const BUILTIN_RULES: CallRules = { retry: { maxRetries: 2, retryOn, backoffMs }, mayRunTwice: true }

function draftStep(
  step: GraphStep,
  index: number,
  o: {
    readonly config: ModelConfig
    readonly configOf: ConfigOfStep
    readonly modelOf: ConfigOfStep
    readonly table: TensorTable
    readonly constants: ConstantTable
  },
): Omit<PlanStep, 'label' | 'index' | 'when' | 'forEach' | 'loop' | 'optionalOutputs'> {
  const { config, configOf, modelOf, table, constants } = o
  const model = configOf(step)
  const called = modelOf(step)
  const isKnown = model !== undefined && called !== undefined
  assert(isKnown, `model ${step.model} was not looked up`)
  const isBatched = model.max_batch_size > 0
  const inputs: PlanStepInput[] = []
  const fixed: PlanStepConstant[] = []
  for (const { name, from } of step.inputs) {
    const declared = model.input.find((input) => input.name === name)
    assert(declared !== undefined, `model ${model.name} has no input ${name}`)
    const { dims, optional } = declared
    if (from.kind === 'constant') {
      const isRow = isBatched && from.constant.shape.length === dims.length
      fixed.push({ name, constant: constants.add(from.constant), isRow })
    } else {
      const tensors = tensorsOf(from).map((tensor) => table.indexOf(tensor))
      inputs.push({ name, tensors, dims, optional })
    }
  }
  const [fault] = findCallFaults(step.call, model, fallbackConfig(step, configOf))
  if (fault !== undefined) {
    throw invalid(config, `in ensemble '${config.name}', ${fault.field}: ${fault.text}`)
  }
  return {
    name: step.name,
    model: step.model,
    version: step.version,
    isBatched,
    decoupled: isDecoupled(model),
    inputs,
    constants: fixed,
    outputs: step.outputs.map(({ name }) => {
      return { name, tensor: table.indexOf({ kind: 'made', step: index, output: name }) }
    }),
    controls: (step.controls ?? []).map(({ name, from }) => ({
      name,
      tensor: table.indexOf(from),
    })),
    parameters: step.parameters && toParameters(step.parameters),
    reads: [...new Set(readsOf(step).map((tensor) => table.indexOf(tensor)))],
    outputNames: step.outputs.map(({ name }) => name),
    dependsOn: step.after,
    builtin: step.builtin && { text: toStepText(called), config: called },
    call: step.builtin === undefined ? (step.call ?? NO_RULES) : { ...BUILTIN_RULES, ...step.call },
  }
}

/** @throws Error for a condition that does not compile, which the checker has refused. */
function conditionOf(
  graph: Graph,
  { when, controls = [] }: GraphStep,
  definitions: TensorDefinitions,
): PlanStep['when'] {
  return when === undefined
    ? undefined
    : compileCondition(when, datatypesOf(graph, controls, definitions))
}

/** Converts parameters: whole numbers to int64, other numbers to double. */
function toParameters(values: NonNullable<GraphStep['parameters']>): Parameters {
  return new Map(
    Object.entries(values).map(([name, value]): [string, Parameter] => {
      if (typeof value === 'string') return [name, { kind: 'string', value }]
      if (typeof value === 'boolean') return [name, { kind: 'bool', value }]
      if (Number.isSafeInteger(value)) return [name, { kind: 'int64', value: BigInt(value) }]
      return [name, { kind: 'double', value }]
    }),
  )
}

function ensembleTensor(
  { name, dims, reshape }: ModelInput | ModelOutput,
  tensors: readonly number[],
): Omit<PlanEnsembleTensor, 'optional'> {
  return { name, tensors, dims, reshape: reshape?.shape }
}

function invalid(
  { name }: ModelConfig,
  text: string,
  details: Readonly<Record<string, string>> = {},
): ServeError {
  return new ServeError('ENSEMBLE_INVALID', text, { details: { ensemble: name, ...details } })
}
