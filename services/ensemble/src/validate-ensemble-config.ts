import { ServeError } from '@tutti/errors'
import type { EnsembleStep, ModelConfig } from '@tutti/model-config'

/** An ensemble tensor as the graph check sees it: which tensors it is made from and which are made from it. */
interface GraphTensor {
  readonly name: string
  isWritten: boolean
  readonly previous: GraphTensor[]
  readonly next: GraphTensor[]
}

type Graph = Map<string, GraphTensor>

/**
 * Checks the rules that an ensemble's own config.pbtxt can break, without a look at its composing models. A configuration that
 * is no ensemble passes.
 *
 * @throws ServeError ENSEMBLE_INVALID with Triton's text for the first broken rule, in Triton's order.
 * @see triton-semantics 1.1
 */
export function validateEnsembleConfig(config: ModelConfig): void {
  const graph: Graph = new Map()
  for (const rule of [fieldProblems, stepProblems, graphProblems]) {
    // Each rule yields in Triton's order and is left at its first problem.
    for (const [text, field] of rule(config, graph)) {
      throw new ServeError('ENSEMBLE_INVALID', text, {
        details: { ensemble: config.name, ...(field !== undefined && { field }) },
      })
    }
  }
}

/** A text, and the field if there is one to name. */
type Problem = readonly [text: string, field?: string]

/** Yields the problems of the fields outside the graph, with Triton's texts, in Triton's order. */
export function* fieldProblems(config: ModelConfig): Generator<Problem> {
  const { name, platform, ensemble_scheduling: scheduling } = config
  const isEnsemble = platform === 'ensemble'
  if (isEnsemble && config.backend !== '') {
    yield [`Ensemble model '${name}' must have platform type 'ensemble' and empty backend type`]
  }
  if (isEnsemble && scheduling === undefined) {
    yield [`ensemble scheduling must be set for ensemble ${name} whose platform is ensemble`]
  }
  if (scheduling === undefined) return
  if (!isEnsemble) {
    yield [`ensemble scheduling cannot be set for model '${name}' whose platform is not ensemble`]
  }
  if (config.instance_group.length > 0) {
    yield [`instance group should not be specified for ensemble '${name}'`]
  }
  if (config.optimization !== undefined) {
    yield [`optimization should not be specified for ensemble '${name}'`]
  }
  if (config.model_warmup.length > 0) {
    yield [`model_warmup can not be specified for ensemble '${name}'`]
  }
  if (scheduling.step.length === 0) yield [`must specify 'step' for ensemble '${name}'`]
}

function* stepProblems(config: ModelConfig, graph: Graph): Generator<Problem> {
  for (const [index, step] of config.ensemble_scheduling?.step.entries() ?? []) {
    const where = `in step ${index} of ensemble '${config.name}'`
    if (step.model_name === '') yield [`must specify 'model_name' ${where}`]
    if (step.model_namespace !== '') {
      // A Triton without --model-namespacing takes the field and does not look at it.
      yield [
        `'model_namespace' is '${step.model_namespace}' ${where}, want '': model namespacing is off`,
        `ensemble_scheduling.step[${index}].model_namespace`,
      ]
    }
    if (Object.keys(step.input_map).length === 0) yield [`must specify 'input_map' ${where}`]
    if (Object.keys(step.output_map).length === 0) yield [`must specify 'output_map' ${where}`]
    const repeated = addStep(graph, step)
    if (repeated === undefined) continue
    yield [
      `ensemble tensor '${repeated}' can appear in an output map only once for ensemble '${config.name}' step ${index}`,
    ]
  }
}

/** @returns a tensor that the step writes and that has been written before. */
function addStep(graph: Graph, step: EnsembleStep): string | undefined {
  const written = Object.values(step.output_map).map((name) => tensorOf(graph, name))
  for (const tensor of written) {
    if (tensor.isWritten) return tensor.name
    tensor.isWritten = true
  }
  for (const name of new Set(Object.values(step.input_map))) {
    const read = tensorOf(graph, name)
    read.next.push(...written)
    for (const tensor of written) tensor.previous.push(read)
  }
  return undefined
}

function tensorOf(graph: Graph, name: string): GraphTensor {
  const known = graph.get(name)
  if (known !== undefined) return known
  const tensor = { name, isWritten: false, previous: [], next: [] }
  graph.set(name, tensor)
  return tensor
}

function* graphProblems(config: ModelConfig, graph: Graph): Generator<Problem> {
  if (config.ensemble_scheduling === undefined) return
  const { name, input, output } = config
  const unused = input.find((declared) => !graph.has(declared.name))
  // The quotes are Triton's.
  if (unused) yield [`ensemble input '${unused.name}' for ensemble ${name}' is not used`]
  const ready = readyTensors(graph, input)
  for (const declared of output) {
    const tensor = graph.get(declared.name)
    if (tensor === undefined) {
      yield [`ensemble output '${declared.name}' for ensemble ${name}' is not used`]
    } else if (!ready.has(tensor)) {
      const { furthest, cycle } = furthestUnready(tensor, ready)
      const hint = `: at least one of its depending tensors, '${furthest.name}', is not connected`
      yield [
        `output '${declared.name}' for ensemble '${name}' is not written${furthest === tensor ? '' : hint}${cycleText(cycle)}`,
      ]
    }
  }
  const given = new Set(output.map((declared) => declared.name))
  for (const tensor of graph.values()) {
    if (given.has(tensor.name) || (ready.has(tensor) && tensor.next.length > 0)) continue
    yield [`ensemble tensor '${tensor.name}' is unused in ensemble '${name}'`]
  }
}

/**
 * Finds the tensors that become ready. A tensor is ready once everything that it is made from is; the ensemble's inputs are ready
 * from the start.
 */
function readyTensors(graph: Graph, inputs: ModelConfig['input']): ReadonlySet<GraphTensor> {
  const ready = new Set(inputs.flatMap(({ name }) => graph.get(name) ?? []))
  for (const tensor of ready) {
    for (const next of tensor.next) {
      if (next.previous.every((previous) => ready.has(previous))) ready.add(next)
    }
  }
  return ready
}

/**
 * Follows the first tensor that is not ready, upstream, until there is none or a cycle closes, which then begins with `furthest`.
 */
function furthestUnready(
  start: GraphTensor,
  ready: ReadonlySet<GraphTensor>,
): { readonly furthest: GraphTensor; readonly cycle: readonly GraphTensor[] } {
  const seen = new Set<GraphTensor>()
  let furthest = start
  while (!seen.has(furthest)) {
    seen.add(furthest)
    const next = furthest.previous.find((tensor) => !ready.has(tensor))
    if (next === undefined) return { furthest, cycle: [] }
    furthest = next
  }
  const way = [...seen]
  return { furthest, cycle: way.slice(way.indexOf(furthest)) }
}

/** Stands behind Triton's text, which does not tell a cycle from a tensor that nothing makes. */
function cycleText(cycle: readonly GraphTensor[]): string {
  if (cycle.length === 0) return ''
  const names = [...cycle, ...cycle.slice(0, 1)].map((tensor) => `'${tensor.name}'`)
  return `: tensors are made from one another: ${names.join(' from ')}`
}
