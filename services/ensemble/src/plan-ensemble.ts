import type { EnsembleRules, StepHedge } from '@tutti/api'
import { assert, ServeError } from '@tutti/errors'
import {
  type EnsembleStep,
  isDecoupled,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  responseCacheFault,
} from '@tutti/model-config'
import { type LookupModel, resolveComposingModels } from './composing-models.ts'
import { labelTensors } from './decouple-labels.ts'
import type { EnsemblePlan, PlanEnsembleTensor, PlanStep, PlanTensor } from './ensemble-plan.ts'
import { runGraph } from './run-graph.ts'
import { checkDependencies } from './step-dependencies.ts'
import { checkTensorMapping } from './tensor-mapping.ts'
import { validateEnsembleConfig } from './validate-ensemble-config.ts'

/**
 * Checks an ensemble against the models that it composes, and compiles it into a plan.
 *
 * @param o.lookup - finds a model; undefined for a name that is in no repository.
 * @param o.rules - rules of a manifest beyond the config; the caller makes sure that they fit the config.
 * @throws ServeError ENSEMBLE_INVALID or ENSEMBLE_DEPENDENCY, with Triton's text where Triton has the rule.
 * @see triton-semantics 1.1 to 1.3
 */
export function planEnsemble(o: {
  readonly config: ModelConfig
  readonly lookup: LookupModel
  readonly rules?: EnsembleRules | undefined
}): EnsemblePlan {
  const { config, rules } = o
  validateEnsembleConfig(config)
  const scheduling = config.ensemble_scheduling
  assert(scheduling !== undefined, `${config.name} is no ensemble`)
  const configOf = resolveComposingModels(config, o.lookup)
  const definitions = checkTensorMapping(config, configOf)
  const names = new TensorNames(config)
  const drafts = scheduling.step.map((step, index) => ({
    ...draftStep(step, configOf(step), names),
    index,
    name: rules?.stepNames[index] ?? stepName(config, step, index),
    dependsOn: [...new Set(rules?.dependsOn[index])],
    hedge: hedgeOf(config, configOf(step), findHedge(rules, index)),
  }))
  if (rules !== undefined) checkDependencies(config, rules, drafts, names.all)
  const outputs = config.output.map((output) => ensembleTensor(output, names.written(output.name)))
  const labels = labelTensors({ config, definitions, tensors: names.all, steps: drafts, outputs })
  const steps = drafts.map((draft) => ({ ...draft, label: labels[draft.reads[0] ?? -1] ?? 0 }))
  const tensors = names.all.map((tensor, i) => ({ ...tensor, label: labels[i] ?? 0 }))
  const decoupled = steps.some((step) => step.decoupled)
  if (decoupled && config.response_cache?.enable === true) {
    const text = responseCacheFault(config.name, "'decoupled' transaction policy")
    throw new ServeError('ENSEMBLE_INVALID', text, { details: { ensemble: config.name } })
  }
  return {
    name: config.name,
    config,
    maxBatchSize: config.max_batch_size,
    decoupled,
    stepSlots: { maxInflightRequests: scheduling.max_inflight_requests },
    timeoutMs: rules?.timeoutMs,
    maxInFlightRequests: rules?.maxInFlightRequests,
    steps,
    tensors,
    inputs: config.input.map((input) => ensembleTensor(input, names.read(input.name))),
    outputs,
    graph: runGraph({ steps, tensors }, outputs),
  }
}

/** Returns the configuration of an ensemble that clients get. `decoupled` is computed, whatever was written. */
export function completeEnsembleConfig(plan: EnsemblePlan): ModelConfig {
  return { ...plan.config, model_transaction_policy: { decoupled: plan.decoupled } }
}

/**
 * Gives tensors their indexes. What a step writes onto the name of an ensemble input is a tensor of its own, so that
 * the request's value stays what steps read (triton-semantics 9.3 accepts such graphs without saying more).
 */
class TensorNames {
  readonly all: Omit<PlanTensor, 'label'>[] = []
  readonly #read = new Map<string, number>()
  readonly #written = new Map<string, number>()

  constructor(config: ModelConfig) {
    const inputs = new Set(config.input.map((input) => input.name))
    for (const name of inputs) this.#read.set(name, this.all.push({ name, step: undefined }) - 1)
    for (const [step, { output_map }] of config.ensemble_scheduling?.step.entries() ?? []) {
      for (const name of Object.values(output_map)) {
        const index = this.all.push({ name, step }) - 1
        this.#written.set(name, index)
        if (!inputs.has(name)) this.#read.set(name, index)
      }
    }
  }

  /** Finds the tensor that a step gets if it reads `name`. */
  read(name: string): number {
    const index = this.#read.get(name)
    assert(index !== undefined, `nothing makes ensemble tensor ${name}`)
    return index
  }

  /** Finds the tensor that a step writes onto `name`; the ensemble input itself if no step does. */
  written(name: string): number {
    return this.#written.get(name) ?? this.read(name)
  }
}

function draftStep(
  step: EnsembleStep,
  model: ModelConfig | undefined,
  names: TensorNames,
): Omit<PlanStep, 'label' | 'index' | 'name' | 'dependsOn' | 'hedge'> {
  assert(model !== undefined, `model ${step.model_name} was not looked up`)
  const inputs = Object.entries(step.input_map).map(([name, read]) => {
    const declared = model.input.find((input) => input.name === name)
    assert(declared !== undefined, `model ${model.name} has no input ${name}`)
    return { name, tensor: names.read(read), dims: declared.dims, optional: declared.optional }
  })
  const outputs = Object.entries(step.output_map)
  return {
    model: step.model_name,
    version: step.model_version,
    isBatched: model.max_batch_size > 0,
    decoupled: isDecoupled(model),
    inputs,
    outputs: outputs.map(([name, written]) => ({ name, tensor: names.written(written) })),
    reads: [...new Set(inputs.map((input) => input.tensor))],
    outputNames: outputs.map(([name]) => name),
  }
}

/** Tells why requests to a model can never be hedged; returns undefined if they can. */
export function hedgeFault(model: ModelConfig): string | undefined {
  const want = `want no hedge for '${model.name}'`
  if (isDecoupled(model))
    return `its responses are a stream, of which each replica has its own; ${want}`
  if (model.sequence_batching === undefined) return undefined
  return `a sequence has its state on one replica; ${want}`
}

function findHedge(rules: EnsembleRules | undefined, index: number): StepHedge | undefined {
  return rules?.hedges?.find(({ step }) => step === index)
}

/** @throws ServeError ENSEMBLE_INVALID */
function hedgeOf(
  ensemble: ModelConfig,
  model: ModelConfig | undefined,
  hedge: StepHedge | undefined,
): StepHedge | undefined {
  const fault = hedge && model && hedgeFault(model)
  if (fault === undefined) return hedge
  const text = `in ensemble '${ensemble.name}', hedge: ${fault}`
  throw new ServeError('ENSEMBLE_INVALID', text, { details: { ensemble: ensemble.name } })
}

function stepName(config: ModelConfig, step: EnsembleStep, index: number): string {
  const steps = config.ensemble_scheduling?.step ?? []
  const isUnique = steps.every((other, i) => i === index || other.model_name !== step.model_name)
  return isUnique ? step.model_name : `${step.model_name}#${index}`
}

function ensembleTensor(declared: ModelInput | ModelOutput, tensor: number): PlanEnsembleTensor {
  const { name, dims, reshape } = declared
  const optional = 'optional' in declared && declared.optional
  return { name, tensor, dims, reshape: reshape?.shape, optional }
}
