import { assert } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { formatShape } from '@tutti/tensor'
import { type Graph, tensorName, tensorsOf } from '../graph.ts'
import type { StructureFault } from './find-structure-faults.ts'
import type { TensorFault } from './find-tensor-faults.ts'

/*
 * The words of a real Triton for an ensemble that it does not load, to the letter. Its texts are in triton-semantics 1.1 and 1.2.
 */

/**
 * Returns Triton's text of a graph that breaks a rule by itself.
 *
 * @param first - the first fault; absent if only a source is not known.
 */
export function structureText(
  config: ModelConfig,
  graph: Graph,
  first: StructureFault | undefined,
): string {
  const where = (step: number): string => `in step ${step} of ensemble '${config.name}'`
  switch (first?.kind) {
    case 'no model':
      return `must specify 'model_name' ${where(first.step)}`
    case 'no inputs':
      return `must specify 'input_map' ${where(first.step)}`
    case 'no outputs':
      return `must specify 'output_map' ${where(first.step)}`
    case 'made twice':
      return `ensemble tensor '${first.tensor}' can appear in an output map only once for ensemble '${config.name}' step ${first.at.step}`
    case undefined:
    case 'unread input':
    case 'unread tensor':
    case 'cycle':
  }
  const [text] = tensorTexts(config, graph)
  if (text !== undefined) return text
  // Steps that wait for one another by `dependsOn`, which Triton does not have.
  assert(first?.kind === 'cycle', `bug: Triton has no text for ensemble ${config.name}`)
  const names = [...first.steps, ...first.steps.slice(0, 1)].map((step) => graph.steps[step]?.name)
  return `in ensemble ${config.name}, steps wait for one another: ${names.join(' -> ')}`
}

/** Returns Triton's text of a step that does not fit its model. */
export function tensorText(config: ModelConfig, fault: TensorFault): string {
  const { model, at } = fault
  const prefix = `in ensemble ${config.name}, `
  switch (fault.kind) {
    case 'batch':
      return `ensemble ${config.name} allows maximum batch size ${config.max_batch_size}, but it contains model ${model.name} which only allows maximum batch size to be ${model.max_batch_size}`
    case 'unfed':
      return `${prefix}input ${at.name} in model ${model.name} is not mapped to any ensemble tensors`
    case 'unknown port': {
      const mapping = at.side === 'input' ? 'mapping to' : 'mapped from'
      return `${prefix}ensemble tensor ${fault.tensor} is ${mapping} non-existing ${at.side} ${at.name} in model ${model.name}`
    }
    case 'several outputs':
      return `${prefix}multiple outputs in model ${model.name} are mapped to the same ensemble tensor ${fault.tensor}`
    case 'datatype':
    case 'shape':
  }
  const isShape = fault.kind === 'shape'
  const [first, next] = [fault.first, fault.next].map(
    (one) =>
      `${isShape ? formatShape(one.fullDims) : one.dataType} is inferred from model ${one.model}`,
  )
  return `${prefix}ensemble tensor ${fault.tensor}: inconsistent ${isShape ? 'shape' : 'data type'}: ${first} while ${next}`
}

/** An ensemble tensor as Triton sees it: which tensors it is made from and which are made from it. */
interface NamedTensor {
  readonly name: string
  readonly previous: NamedTensor[]
  readonly next: NamedTensor[]
}

/** Yields Triton's texts of tensors that are not used or not written, in Triton's order. Triton knows them by their names alone. */
function* tensorTexts({ name, input, output }: ModelConfig, graph: Graph): Generator<string> {
  const tensors = namedTensors(graph)
  const unused = input.find((declared) => !tensors.has(declared.name))
  // The quotes are Triton's.
  if (unused) yield `ensemble input '${unused.name}' for ensemble ${name}' is not used`
  const ready = readyTensors(tensors, input)
  for (const declared of output) {
    const tensor = tensors.get(declared.name)
    if (tensor === undefined) {
      yield `ensemble output '${declared.name}' for ensemble ${name}' is not used`
    } else if (!ready.has(tensor)) {
      const { furthest, cycle } = furthestUnready(tensor, ready)
      const hint = `: at least one of its depending tensors, '${furthest.name}', is not connected`
      yield `output '${declared.name}' for ensemble '${name}' is not written${furthest === tensor ? '' : hint}${cycleText(cycle)}`
    }
  }
  const given = new Set(output.map((declared) => declared.name))
  for (const tensor of tensors.values()) {
    if (given.has(tensor.name) || (ready.has(tensor) && tensor.next.length > 0)) continue
    yield `ensemble tensor '${tensor.name}' is unused in ensemble '${name}'`
  }
}

function namedTensors(graph: Graph): ReadonlyMap<string, NamedTensor> {
  const tensors = new Map<string, NamedTensor>()
  const named = (name: string): NamedTensor => {
    const known = tensors.get(name) ?? { name, previous: [], next: [] }
    tensors.set(name, known)
    return known
  }
  for (const { inputs, outputs } of graph.steps) {
    const written = outputs.map(({ tensor }) => named(tensor))
    const fed = inputs.flatMap(({ from }) => tensorsOf(from))
    for (const name of new Set(fed.map((tensor) => tensorName(graph, tensor)))) {
      const read = named(name)
      for (const tensor of written) {
        tensor.previous.push(read)
        read.next.push(tensor)
      }
    }
  }
  return tensors
}

/**
 * Finds the tensors that become ready. A tensor is ready once everything that it is made from is; the ensemble's inputs are ready
 * from the start.
 */
function readyTensors(
  tensors: ReadonlyMap<string, NamedTensor>,
  inputs: ModelConfig['input'],
): ReadonlySet<NamedTensor> {
  const ready = new Set(inputs.flatMap(({ name }) => tensors.get(name) ?? []))
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
  start: NamedTensor,
  ready: ReadonlySet<NamedTensor>,
): { readonly furthest: NamedTensor; readonly cycle: readonly NamedTensor[] } {
  const seen = new Set<NamedTensor>()
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
function cycleText(cycle: readonly NamedTensor[]): string {
  if (cycle.length === 0) return ''
  const names = [...cycle, ...cycle.slice(0, 1)].map((tensor) => `'${tensor.name}'`)
  return `: tensors are made from one another: ${names.join(' from ')}`
}
