import {
  describeStep,
  type EnsemblePlan,
  type GraphStep,
  modelsOf,
  type PlanStep,
  readConfigGraph,
  signatureOf as signatureOfStep,
  tensorsOf as sourcesOf,
  tensorName,
} from '@tutti/graph'
import {
  isEnsembleConfig,
  type ModelConfig,
  type ModelMetadata,
  modelMetadata,
  plainName,
} from '@tutti/model-config'
import type { StepTotals } from '@tutti/telemetry'
import type { Graph, StepDetail, Tensor } from './api/model-detail.ts'

/** The facts about the model of a step that the caller may know. */
export interface KnownStep {
  readonly config?: ModelConfig | undefined
  readonly isReady: boolean
  /** Failures of the model; undefined without counts. */
  readonly failures: number | undefined
}

export interface GraphSource {
  readonly config: ModelConfig
  /** Plan of the ensemble, with the names of its steps; absent if the ensemble cannot run. */
  readonly plan?: EnsemblePlan | undefined
  /** Function that finds a step's model; undefined if there is none, or the caller may not see it. */
  readonly known: (model: string) => KnownStep | undefined
  readonly totals: readonly StepTotals[]
}

/** Reads the steps of an ensemble and the tensors between them; undefined if the config is of no ensemble. */
export function readGraph(o: GraphSource): Graph | undefined {
  const { config, plan } = o
  if (!isEnsembleConfig(config)) return undefined
  const totals = new Map(o.totals.map((one) => [one.step, one]))
  const tensors = new Map(signatureOf(config).map((tensor) => [tensor.name, tensor]))
  const graph = plan?.graph ?? readConfigGraph(config)
  const steps = graph.steps.map((step, i): StepDetail => {
    const { version, name } = step
    const { model, known, state } = calledBy(step, plan?.steps[i], o)
    const ports = {
      inputs: step.inputs.flatMap(({ name: input, from }) =>
        sourcesOf(from).map((tensor) => ({ name: input, tensor: tensorName(graph, tensor) })),
      ),
      outputs: step.outputs.map((one) => ({ name: one.name, tensor: one.tensor })),
    }
    for (const tensor of tensorsOf(
      [...ports.inputs, ...ports.outputs],
      signatureOfStep(step, known?.config),
    )) {
      if (!tensors.has(tensor.name) || tensors.get(tensor.name)?.datatype === '') {
        tensors.set(tensor.name, tensor)
      }
    }
    return {
      name: plainName(name),
      model,
      version,
      state,
      ...ports,
      call: describeStep(step),
      totals: toTotals(totals.get(name)),
      failures: known?.failures,
    }
  })
  return { steps, tensors: [...tensors.values()] }
}

interface Called extends Pick<StepDetail, 'model' | 'state'> {
  readonly known: KnownStep | undefined
}

/** Finds what a step calls. */
function calledBy(
  { model, builtin }: GraphStep,
  planned: PlanStep | undefined,
  o: Pick<GraphSource, 'known'>,
): Called {
  if (builtin !== undefined) {
    const config = planned?.builtin?.config
    const known = { config, isReady: true, failures: undefined }
    return { model: `builtin:${builtin.name}`, known, state: 'built-in' }
  }
  const name = plainName(model)
  const known = o.known(name)
  if (known === undefined) return { model: name, known, state: 'unknown' }
  return { model: name, known, state: known.isReady ? 'ready' : 'not ready' }
}

/** Lists the models that an ensemble runs; none for another model. */
export function composingModels({
  config,
  plan,
}: Pick<GraphSource, 'plan'> & { readonly config?: ModelConfig | undefined }): readonly string[] {
  const graph = plan?.graph ?? (config && readConfigGraph(config))
  return graph === undefined ? [] : modelsOf(graph).map(plainName)
}

/** Lists the inputs and outputs of a model, as its clients see them. */
export function signatureOf(config: ModelConfig): readonly Tensor[] {
  const { inputs, outputs } = modelMetadata(config, [])
  return [...toTensors(inputs, config), ...toTensors(outputs, config)]
}

export function toTensors(
  described: ModelMetadata['inputs'],
  config: ModelConfig,
): readonly Tensor[] {
  const optional = new Set(config.input.filter((one) => one.optional).map(({ name }) => name))
  return described.map(({ name, datatype, shape }) => ({
    name,
    datatype,
    shape: [...shape],
    isOptional: optional.has(name),
  }))
}

/**
 * Lists the ensemble tensors that a step reads and writes, with the types that its model says; '' for a type that is not known.
 */
function tensorsOf(
  ports: readonly { readonly name: string; readonly tensor: string }[],
  config?: ModelConfig,
): Tensor[] {
  const described = config === undefined ? [] : signatureOf(config)
  return ports.map(({ name, tensor }) => {
    const found = described.find((one) => one.name === name)
    return {
      name: tensor,
      datatype: found?.datatype ?? '',
      shape: found?.shape ?? [],
      isOptional: false,
    }
  })
}

function toTotals(one: StepTotals | undefined): StepDetail['totals'] {
  if (one === undefined) return undefined
  return {
    requests: one.count,
    queueMs: one.queueSeconds * 1e3,
    transferMs: one.transferSeconds * 1e3,
    computeMs: one.computeSeconds * 1e3,
  }
}
