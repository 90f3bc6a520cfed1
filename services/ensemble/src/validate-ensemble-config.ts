import { ServeError } from '@tutti/errors'
import type { EnsembleScheduling, EnsembleStep, ModelConfig } from '@tutti/model-config'

/** An ensemble tensor as the graph check sees it: which tensors it is made from and which are made from it. */
interface GraphTensor {
  readonly name: string
  isWritten: boolean
  isReady: boolean
  readonly previous: GraphTensor[]
  readonly next: GraphTensor[]
}

type Graph = Map<string, GraphTensor>

/**
 * Checks what an ensemble's own config.pbtxt can show, before any composing model is looked at. A config that is
 * no ensemble passes.
 *
 * @throws ServeError ENSEMBLE_INVALID with Triton's text for the first broken rule, in Triton's order.
 * @see triton-semantics 1.1
 */
export function validateEnsembleConfig(config: ModelConfig): void {
  const { name, platform, ensemble_scheduling: scheduling } = config
  if (platform === 'ensemble' && config.backend !== '') {
    throw invalid(
      config,
      `Ensemble model '${name}' must have platform type 'ensemble' and empty backend type`,
    )
  }
  if (scheduling === undefined) {
    if (platform !== 'ensemble') return
    throw invalid(
      config,
      `ensemble scheduling must be set for ensemble ${name} whose platform is ensemble`,
    )
  }
  if (platform !== 'ensemble') {
    throw invalid(
      config,
      `ensemble scheduling cannot be set for model '${name}' whose platform is not ensemble`,
    )
  }
  checkForeignFields(config)
  checkGraph(config, scheduling)
}

function checkForeignFields(config: ModelConfig): void {
  const { name } = config
  if (config.instance_group.length > 0) {
    throw invalid(config, `instance group should not be specified for ensemble '${name}'`)
  }
  if (config.optimization !== undefined) {
    throw invalid(config, `optimization should not be specified for ensemble '${name}'`)
  }
  if (config.model_warmup.length > 0) {
    throw invalid(config, `model_warmup can not be specified for ensemble '${name}'`)
  }
}

function checkGraph(config: ModelConfig, scheduling: EnsembleScheduling): void {
  if (scheduling.step.length === 0) {
    throw invalid(config, `must specify 'step' for ensemble '${config.name}'`)
  }
  const graph: Graph = new Map()
  for (const [index, step] of scheduling.step.entries()) addStep(config, graph, step, index)
  markReady(config, graph)
  checkOutputs(config, graph)
  checkIntermediates(config, graph)
}

function addStep(config: ModelConfig, graph: Graph, step: EnsembleStep, index: number): void {
  const inputs = new Set(Object.values(step.input_map))
  const outputs = Object.values(step.output_map)
  const where = `in step ${index} of ensemble '${config.name}'`
  if (step.model_name === '') throw invalid(config, `must specify 'model_name' ${where}`)
  if (step.model_namespace !== '') {
    // A Triton without --model-namespacing takes the field and does not look at it.
    throw invalid(
      config,
      `'model_namespace' is '${step.model_namespace}' ${where}, want '': model namespacing is off`,
    ).withDetails({ field: `ensemble_scheduling.step[${index}].model_namespace` })
  }
  if (inputs.size === 0) throw invalid(config, `must specify 'input_map' ${where}`)
  if (outputs.length === 0) throw invalid(config, `must specify 'output_map' ${where}`)
  const written = outputs.map((name) => {
    const tensor = tensorOf(graph, name)
    if (tensor.isWritten) {
      throw invalid(
        config,
        `ensemble tensor '${name}' can appear in an output map only once for ensemble '${config.name}' step ${index}`,
      )
    }
    tensor.isWritten = true
    return tensor
  })
  for (const name of inputs) {
    const read = tensorOf(graph, name)
    for (const tensor of written) {
      tensor.previous.push(read)
      read.next.push(tensor)
    }
  }
}

function tensorOf(graph: Graph, name: string): GraphTensor {
  const known = graph.get(name)
  if (known !== undefined) return known
  const tensor = { name, isWritten: false, isReady: false, previous: [], next: [] }
  graph.set(name, tensor)
  return tensor
}

/** A tensor is ready when everything that it is made from is; the ensemble's inputs are from the start. */
function markReady(config: ModelConfig, graph: Graph): void {
  const queue: GraphTensor[] = []
  for (const input of config.input) {
    const tensor = graph.get(input.name)
    if (tensor === undefined) {
      // The quotes are Triton's.
      throw invalid(
        config,
        `ensemble input '${input.name}' for ensemble ${config.name}' is not used`,
      )
    }
    tensor.isReady = true
    queue.push(tensor)
  }
  for (const tensor of queue) {
    for (const next of tensor.next) {
      if (next.isReady || !next.previous.every((previous) => previous.isReady)) continue
      next.isReady = true
      queue.push(next)
    }
  }
}

function checkOutputs(config: ModelConfig, graph: Graph): void {
  for (const output of config.output) {
    const tensor = graph.get(output.name)
    if (tensor === undefined) {
      throw invalid(
        config,
        `ensemble output '${output.name}' for ensemble ${config.name}' is not used`,
      )
    }
    if (tensor.isReady) continue
    const furthest = furthestUnready(tensor)
    const hint =
      furthest === tensor
        ? ''
        : `: at least one of its depending tensors, '${furthest.name}', is not connected`
    throw invalid(
      config,
      `output '${output.name}' for ensemble '${config.name}' is not written${hint}`,
    )
  }
}

/** Follows the first tensor that is not ready, upstream, until there is none or a cycle closes. */
function furthestUnready(start: GraphTensor): GraphTensor {
  const seen = new Set<GraphTensor>()
  let current = start
  while (!seen.has(current)) {
    seen.add(current)
    const previous = current.previous.find((tensor) => !tensor.isReady)
    if (previous !== undefined) current = previous
  }
  return current
}

function checkIntermediates(config: ModelConfig, graph: Graph): void {
  const outputs = new Set(config.output.map((output) => output.name))
  for (const tensor of graph.values()) {
    if (outputs.has(tensor.name) || (tensor.isReady && tensor.next.length > 0)) continue
    throw invalid(config, `ensemble tensor '${tensor.name}' is unused in ensemble '${config.name}'`)
  }
}

function invalid(config: ModelConfig, message: string): ServeError {
  return new ServeError('ENSEMBLE_INVALID', message, { details: { ensemble: config.name } })
}
