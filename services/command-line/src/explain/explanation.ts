import type { FlagTable } from '@tutti/chassis'
import { assert } from '@tutti/errors'
import {
  describeStep,
  type EnsemblePlan,
  type GraphStep,
  type PlanStep,
  selectOutputs,
  signatureOf,
} from '@tutti/graph'
import { type ModelConfig, modelMetadata } from '@tutti/model-config'
import { z } from 'zod'
import { readonlyListOf } from '../results/result-schema.ts'
import { chainTo, longestChains, longestOf } from './longest-chains.ts'

/** Flag of both `explain` commands for the outputs that a request asks for. */
export const REQUESTED_OUTPUT_FLAG = {
  type: 'string',
  repeatable: true,
  description: 'Output that a request asks for. Repeat the flag for more. Default: all.',
} as const satisfies FlagTable[string]

/** A tensor with its type. */
const ExplainedTensor = z.object({
  name: z.string(),
  datatype: z.string(),
  shape: readonlyListOf(z.int()).meta({
    description: 'With the batch dimension, as clients see it; -1 is any extent.',
  }),
})
export type ExplainedTensor = z.infer<typeof ExplainedTensor>

/** A tensor of the ensemble at a step. */
const StepTensor = ExplainedTensor.extend({
  port: z.string().meta({
    description: "Of the step's model: an input that the tensor feeds, or an output that makes it.",
  }),
})

const ExplainedStep = z.object({
  name: z.string(),
  model: z.string(),
  version: z.int().meta({ description: '-1 is the latest.' }),
  stage: z.int().meta({
    description: 'From 1 on. Steps of one stage do not wait for one another.',
  }),
  reads: readonlyListOf(StepTensor).meta({
    description: 'An input of which the first of several tensors counts has one entry for each.',
  }),
  makes: readonlyListOf(StepTensor),
  dependsOn: readonlyListOf(z.string()).meta({
    description: 'Steps whose end it waits for, whether or not it reads what they make.',
  }),
  call: readonlyListOf(z.string()).meta({
    description:
      'In words, beside the plain call: condition, constants, items, iterations, attempts, timeout, fallback.',
  }),
  decoupled: z.boolean().meta({
    description: 'It may answer any number of times, and what reads its outputs executes as often.',
  }),
  executes: z.boolean().meta({ description: 'Whether the requested outputs need it.' }),
})
export type ExplainedStep = z.infer<typeof ExplainedStep>

/** The explanation of what an accepted ensemble does with a request. */
export const Explanation = z
  .object({
    ensemble: z.string(),
    inputs: readonlyListOf(ExplainedTensor),
    outputs: readonlyListOf(ExplainedTensor),
    requestedOutputs: readonlyListOf(z.string()),
    decoupled: z.boolean(),
    steps: readonlyListOf(ExplainedStep),
    longestChain: readonlyListOf(z.string()).meta({
      description:
        'The steps of a longest way through what executes: no request is faster than they are together.',
    }),
  })
  .meta({ title: 'Result of tutti explain' })
export type Explanation = z.infer<typeof Explanation>

/**
 * Explains which steps of an ensemble execute for a request, in which order, and which of them wait for others.
 *
 * @param models - gives the configuration of a model of the ensemble, by name.
 * @param requested - names of outputs; an empty list stands for all outputs.
 * @throws ServeError INVALID_REQUEST for a name that is not an output.
 */
export function explainPlan(
  plan: EnsemblePlan,
  models: (name: string) => ModelConfig | undefined,
  requested: readonly string[],
): Explanation {
  const graph = requested.length === 0 ? plan.whole : selectOutputs(plan, requested)
  const own = modelMetadata(plan.config, [])
  const executes = plan.steps.map(({ outputs }) =>
    outputs.some(({ tensor }) => (graph.uses[tensor] ?? 0) > 0),
  )
  // A step that executes does not wait for one that does not.
  const waitsFor = (step: PlanStep): readonly number[] =>
    step.dependsOn.filter((other) => executes[other] === true || executes[step.index] !== true)
  const makersOf = (step: PlanStep): readonly number[] =>
    step.reads.flatMap((tensor) => plan.tensors[tensor]?.step ?? [])
  const chains = longestChains(
    plan.steps.map((step) => [...new Set([...makersOf(step), ...waitsFor(step)])]),
  )
  const typeOf = (index: number): ExplainedTensor => {
    const tensor = plan.tensors[index]
    const name = tensor?.name ?? ''
    const maker = plan.steps[tensor?.step ?? -1]
    if (maker === undefined) return find(own.inputs, name)
    const port = maker.outputs.find((output) => output.tensor === index)?.name ?? ''
    const { datatype, shape } = find(metadataOf(madeBy(plan, maker, models)).outputs, port)
    return { name, datatype, shape }
  }
  const portOf = ({ name, tensor }: { readonly name: string; readonly tensor: number }) => ({
    port: name,
    ...typeOf(tensor),
  })
  const steps = plan.steps.map((step) => ({
    name: step.name,
    model: step.builtin?.config.name ?? step.model,
    version: step.version,
    stage: chains[step.index]?.length ?? 1,
    reads: step.inputs.flatMap(({ name, tensors }) =>
      tensors.map((tensor) => portOf({ name, tensor })),
    ),
    makes: step.outputs.map(portOf),
    dependsOn: waitsFor(step).map((other) => plan.steps[other]?.name ?? ''),
    call: describeOf(plan.graph.steps[step.index]),
    decoupled: step.decoupled,
    executes: executes[step.index] === true,
  }))
  const executed = [...plan.steps.keys()].filter((index) => executes[index] === true)
  const longest = chainTo(longestOf(executed, chains), chains)
  return {
    ensemble: plan.name,
    inputs: own.inputs,
    outputs: own.outputs,
    requestedOutputs: graph.outputs.map(({ name }) => name),
    decoupled: plan.decoupled,
    steps,
    longestChain: longest.map((index) => plan.steps[index]?.name ?? ''),
  }
}

function describeOf(step: GraphStep | undefined): readonly string[] {
  return step === undefined ? [] : describeStep(step)
}

/** Returns the configuration of a step's model as the graph sees it. */
function madeBy(
  { graph }: EnsemblePlan,
  { index, builtin, model }: PlanStep,
  models: (name: string) => ModelConfig | undefined,
): ModelConfig {
  const config = builtin?.config ?? models(model)
  const step = graph.steps[index]
  const isKnown = config !== undefined && step !== undefined
  assert(isKnown, `the plan has model ${model}, which has no configuration`)
  return signatureOf(step, config)
}

const metadataOf = (config: ModelConfig) => modelMetadata(config, [])

function find(tensors: readonly ExplainedTensor[], name: string): ExplainedTensor {
  const found = tensors.find((tensor) => tensor.name === name)
  assert(found !== undefined, `the plan has tensor ${name}, its model does not`)
  return found
}
