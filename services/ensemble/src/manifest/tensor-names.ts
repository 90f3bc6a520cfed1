import { type EnsembleFault, type ReportFault, refused } from './ensemble-fault.ts'
import type { EnsembleGraph, GraphRead } from './ensemble-graph.ts'
import { sourceKeyOf, stepPath } from './ensemble-references.ts'

/** The names of tensors in the configuration, by `sourceKeyOf` of their source. A tensor that nothing reads has no name. */
export type TensorNames = ReadonlyMap<string, string>

/**
 * Names the tensors for config.pbtxt, where each tensor has one name, and an output has the name of its tensor. The name is
 * that of an output, else the name in `outputMap`, else the reference itself (`STEP.OUTPUT`).
 *
 * @param report - takes the faults OutputInvalid and UnusedInput.
 */
export function nameTensors(graph: EnsembleGraph, report: ReportFault): TensorNames {
  const { spec } = graph
  const names = new Map<string, string>(
    spec.inputs.map(({ name }) => [sourceKeyOf({ kind: 'input', name }), name]),
  )
  for (const [i, read] of graph.outputs.entries()) {
    const fault = read && nameOutput(names, read, spec.outputs[i]?.name ?? '')
    if (fault !== undefined) report(fault)
  }
  nameIntermediates(graph, names)
  checkInputsAreRead(graph, report)
  checkInputNames({ graph, names, report })
  return names
}

function nameOutput(
  names: Map<string, string>,
  { source, path }: GraphRead,
  name: string,
): EnsembleFault | undefined {
  const known = names.get(sourceKeyOf(source))
  if (known === name && source.kind === 'input') return undefined
  if (source.kind === 'input') {
    const problem = `an input is given out under its own name only: got '${name}' for '${source.name}'; want a step that copies it`
    return refused('OutputInvalid', path, problem)
  }
  if (known !== undefined) {
    const problem = `the tensor is the output '${known}' already; want each tensor once`
    return refused('OutputInvalid', path, problem)
  }
  names.set(sourceKeyOf(source), name)
  return undefined
}

function nameIntermediates({ spec, reads, declared }: EnsembleGraph, names: Map<string, string>) {
  const taken = new Set(names.values())
  const open = new Map<string, string>()
  for (const read of reads.flatMap((step) => [...step.values()])) {
    const { source } = read
    if (source.kind === 'input' || names.has(sourceKeyOf(source))) continue
    const { step, output } = source
    open.set(
      sourceKeyOf(source),
      declared[step]?.get(output) ?? `${spec.steps[step]?.name}.${output}`,
    )
  }
  for (const [key, wanted] of open) {
    let name = wanted
    for (let i = 2; taken.has(name); i++) name = `${wanted}#${i}`
    taken.add(name)
    names.set(key, name)
  }
}

function checkInputsAreRead({ spec, reads, meant }: EnsembleGraph, report: ReportFault): void {
  const read = new Set(
    reads.flatMap((step) => [...step.values()].map(({ source }) => sourceKeyOf(source))),
  )
  for (const [i, { name }] of spec.inputs.entries()) {
    if (read.has(sourceKeyOf({ kind: 'input', name })) || meant.has(name)) continue
    const problem = 'no step reads it; want it read, or removed'
    report(refused('UnusedInput', `inputs[${i}](${name})`, problem))
  }
}

/**
 * Checks names of inputs. A step may write onto the name of an input, but then other steps read the request's value under that
 * name.
 */
function checkInputNames(o: {
  readonly graph: EnsembleGraph
  readonly names: TensorNames
  readonly report: ReportFault
}): void {
  const { spec, reads } = o.graph
  const inputs = new Set(spec.inputs.map((input) => input.name))
  for (const [index, step] of reads.entries()) {
    for (const { source, path } of step.values()) {
      const name = o.names.get(sourceKeyOf(source)) ?? ''
      if (source.kind === 'input' || !inputs.has(name)) continue
      const problem = `what ${stepPath(spec, source.step)} makes has the name of the input '${name}', so that ${stepPath(spec, index)} cannot read it; want another name`
      o.report(refused('OutputInvalid', path, problem))
    }
  }
}
