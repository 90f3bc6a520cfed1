import { parseWire } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import {
  declareInput,
  declareOutput,
  emptyModelConfig,
  type ModelConfig,
} from '@tutti/model-config'
import { type Datatype, fromConfigDatatype, isDatatype, type ModelTarget } from '@tutti/tensor'
import { z } from 'zod'
import { fallbackOf } from '../call-rules.ts'
import { findStepCycle } from '../check/graph-walks.ts'
import {
  Graph,
  type GraphStep,
  readsOf,
  type Source,
  stepsOf,
  type TensorSource,
} from '../graph.ts'
import type { EnsemblePlan } from '../plan/ensemble-plan.ts'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { nameTensor, tensorsOfPart } from './tensors-of-part.ts'

/**
 * Requests for parts name this target, and replicas that run parts announce it. The name fits no resource and no directory. Replicas of
 * a release with another form of parts would have another revision.
 */
export const PART_HOST: ModelTarget = { model: '/parts', version: 1, revision: 'parts' }

/** Most UTF-16 code units of a part's text, which each of its requests carries. */
export const MAX_PART_TEXT = 65_536

/** A tensor that crosses the border of a part. */
const Crossing = z.object({
  name: z.string(),
  datatype: z.custom<Datatype>((name) => typeof name === 'string' && isDatatype(name)),
  /** With a leading -1 if there is a batch. */
  dims: z.array(z.int().min(-1)).readonly(),
  isBatched: z.boolean(),
})

/** A part of an ensemble's graph, with all that a process which has its models needs to run it. */
const PartDefinition = z.object({
  /** Served name of the ensemble, for errors and metrics. */
  ensemble: z.string(),
  inputs: z.array(Crossing).readonly(),
  outputs: z.array(Crossing).readonly(),
  /** The steps of the part alone. Versions are those of `pins`. */
  graph: Graph,
  /** The revisions of the models that the steps and their fallbacks run, each once. */
  pins: z
    .array(z.object({ model: z.string(), version: z.int().min(0), revision: z.string() }))
    .readonly(),
})
export type PartDefinition = Readonly<z.infer<typeof PartDefinition>>

/** Writes what a request says to name the part that it is for. Equal parts have equal texts. */
export function toPartText(part: PartDefinition): string {
  return JSON.stringify(part)
}

/** Reads the text of a part. @throws ServeError MALFORMED_MESSAGE for what `toPartText` has not written. */
export function readPartText(text: string): PartDefinition {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    throw new ServeError('MALFORMED_MESSAGE', 'the text of a part is no JSON', { cause: error })
  }
  const part = parseWire('part of a graph', PartDefinition, json)
  const { steps } = part.graph
  const cycle = findStepCycle(steps.map((step) => [...stepsOf(readsOf(step)), ...step.after]))
  if (cycle === undefined) return part
  const why = `part of a graph: graph.steps: ${cycle.join(', ')} wait for one another`
  throw new ServeError('MALFORMED_MESSAGE', why, { details: { field: 'graph.steps' } })
}

/** Writes what one request says: the text of its part, and in a second line the inputs that it lacks because steps were skipped. */
export function toProgram(text: string, skipped: readonly string[] = []): string {
  return skipped.length === 0 ? text : `${text}\n${skipped.join(' ')}`
}

/** Reads what one request says. */
export function readProgram(program: string): {
  readonly text: string
  readonly skipped: readonly string[]
} {
  const [text = '', skipped] = program.split('\n')
  return { text, skipped: skipped?.split(' ') ?? [] }
}

/**
 * Cuts a part out of a graph.
 *
 * @param steps - indexes of its steps in the plan.
 * @param pinOf - finds the revision that a step, or its fallback, runs.
 */
export function definePart(
  plan: EnsemblePlan,
  steps: readonly number[],
  pinOf: (callee: Pick<ModelTarget, 'model' | 'version'>) => ModelTarget,
): PartDefinition {
  const pins = new Map<string, ModelTarget>()
  const versionOf = (callee: Pick<ModelTarget, 'model' | 'version'>): number => {
    const pin = pinOf(callee)
    pins.set(`${pin.model} ${pin.version}`, pin)
    return pin.version
  }
  const toTensor = (tensor: TensorSource): TensorSource => toPartTensor(plan, steps, tensor)
  const graphSteps = steps.map((index): GraphStep => {
    const step = plan.graph.steps[index]
    if (step === undefined) throw new Error(`ensemble ${plan.name} has no step ${index}`)
    return cutStep(step, { index, plan, steps, toTensor, versionOf })
  })
  const { read, made } = tensorsOfPart(plan, steps)
  const outputs = made.map((tensor) => {
    const from = tensorSource(plan, tensor)
    return { name: nameTensor(tensor), from: toTensor(from), optional: true as const }
  })
  const cross = (tensor: number) => crossing(plan, tensor)
  return {
    ensemble: plan.name,
    inputs: read.map(cross),
    outputs: made.map(cross),
    graph: { steps: graphSteps, outputs, maxInFlightPerStep: 0 },
    pins: [...pins.values()],
  }
}

/**
 * Plans a part by itself: its inputs and outputs are the tensors that cross its border.
 *
 * @param configOf - finds the configuration of a revision.
 * @throws ServeError of `configOf`; ENSEMBLE_INVALID for models that do not fit, which are not those that the part was cut for.
 */
export function planPart(
  part: PartDefinition,
  configOf: (pin: ModelTarget) => ModelConfig,
): EnsemblePlan {
  const { ensemble: name, pins, graph, inputs, outputs } = part
  const configs = pins.map((pin) => [pin, configOf(pin)] as const)
  const config: ModelConfig = {
    ...emptyModelConfig(name),
    input: inputs.map((input) => ({ ...declareInput(input), optional: true })),
    output: outputs.map(declareOutput),
  }
  const plan = planEnsemble({
    config,
    graph,
    isPart: true,
    lookup: (model) => {
      const own = configs.filter(([pin]) => pin.model === model)
      const [first] = own
      if (first === undefined) return undefined
      const byVersion = own.map(([{ version }, one]): [number, ModelConfig] => [version, one])
      return {
        config: first[1],
        configs: new Map(byVersion),
        readyVersions: own.map(([{ version }]) => version),
      }
    },
  })
  const areBatched = new Map(
    [...inputs, ...outputs].map(({ name: tensor, isBatched }) => [tensor, isBatched]),
  )
  const asMade = <T extends { readonly name: string }>(tensor: T) => {
    return { ...tensor, isBatched: areBatched.get(tensor.name) ?? false }
  }
  const given = plan.outputs.map(asMade)
  return {
    ...plan,
    inputs: plan.inputs.map(asMade),
    outputs: given,
    whole: { ...plan.whole, outputs: given },
  }
}

function cutStep(
  step: GraphStep,
  o: {
    readonly index: number
    readonly plan: EnsemblePlan
    readonly steps: readonly number[]
    readonly toTensor: (tensor: TensorSource) => TensorSource
    readonly versionOf: (callee: Pick<ModelTarget, 'model' | 'version'>) => number
  },
): GraphStep {
  const { plan, index, steps, toTensor, versionOf } = o
  const { controls, call } = step
  const toSource = (source: Source): Source => {
    if (source.kind === 'constant') return source
    if (source.kind !== 'firstOf') return toTensor(source)
    return { ...source, tensors: source.tensors.map(toTensor) }
  }
  const fallback = call && fallbackOf(call)
  return {
    ...step,
    version: versionOf(step),
    inputs: step.inputs.map(({ name, from }) => ({ name, from: toSource(from) })),
    ...(controls && {
      controls: controls.map(({ name, from }) => ({ name, from: toTensor(from) })),
    }),
    outputs: (plan.steps[index]?.outputs ?? []).map(({ name, tensor }) => {
      return { name, tensor: nameTensor(tensor) }
    }),
    after: step.after.flatMap((other) => (steps.includes(other) ? steps.indexOf(other) : [])),
    ...(fallback && { call: { ...call, onError: { ...fallback, version: versionOf(fallback) } } }),
  }
}

/** Finds the source of a tensor among those of the part. */
function toPartTensor(
  plan: EnsemblePlan,
  steps: readonly number[],
  source: TensorSource,
): TensorSource {
  if (source.kind === 'made' && steps.includes(source.step)) {
    return { ...source, step: steps.indexOf(source.step) }
  }
  const tensor =
    source.kind === 'made'
      ? plan.steps[source.step]?.outputs.find(({ name }) => name === source.output)?.tensor
      : plan.tensors.findIndex(({ name, step }) => step === undefined && name === source.name)
  return { kind: 'input', name: nameTensor(tensor ?? -1) }
}

/** Finds the source of a tensor that a step makes. */
function tensorSource(plan: EnsemblePlan, tensor: number): TensorSource {
  const step = plan.tensors[tensor]?.step ?? -1
  const output = plan.steps[step]?.outputs.find((one) => one.tensor === tensor)?.name ?? ''
  return { kind: 'made', step, output }
}

function crossing({ tensors }: EnsemblePlan, tensor: number): PartDefinition['inputs'][number] {
  const found = tensors[tensor]
  const datatype = found && fromConfigDatatype(found.dataType)
  if (found === undefined || datatype === undefined) throw new Error(`tensor ${tensor} has no type`)
  const { dims, isBatched } = found
  return { name: nameTensor(tensor), datatype, dims, isBatched }
}
