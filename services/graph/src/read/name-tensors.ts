import { type GraphRead, type Report, sourceKeyOf, stepPath } from './ensemble-references.ts'
import { allReads, type ResolvedSpec, stepReads } from './resolve-references.ts'

/** The names of tensors, by `sourceKeyOf` of their source. A tensor that nothing reads has no name. */
export type TensorNames = ReadonlyMap<string, string>

/**
 * Names the tensors for config.pbtxt, where each tensor has one name, and an output has the name of its tensor. The name is
 * that of an output, else the name in `outputMap`, else the reference itself (`STEP.OUTPUT`).
 *
 * @param report - takes problems with the reason OutputInvalid.
 */
export function nameTensors(resolved: ResolvedSpec, report: Report): TensorNames {
  const { spec } = resolved
  const names = new Map<string, string>(
    spec.inputs.map(({ name }) => [sourceKeyOf({ kind: 'input', name }), name]),
  )
  for (const [i, output] of resolved.outputs.entries()) {
    // One of several tensors keeps its own name.
    const [read, another] = output?.reads ?? []
    if (read === undefined || another !== undefined) continue
    const problem = nameOutput(names, read, spec.outputs[i]?.name ?? '')
    if (problem !== undefined) report('OutputInvalid', read.path, problem)
  }
  nameIntermediates(resolved, names)
  checkInputNames({ resolved, names, report })
  return names
}

/** @returns what is wrong with the name; undefined if nothing is. */
function nameOutput(
  names: Map<string, string>,
  { source }: GraphRead,
  name: string,
): string | undefined {
  const known = names.get(sourceKeyOf(source))
  if (known === name && source.kind === 'input') return undefined
  if (source.kind === 'input') {
    return `an input is given out under its own name only: got '${name}' for '${source.name}'; want a step that copies it`
  }
  if (known !== undefined) {
    return `the tensor is the output '${known}' already; want each tensor once`
  }
  names.set(sourceKeyOf(source), name)
  return undefined
}

function nameIntermediates(resolved: ResolvedSpec, names: Map<string, string>) {
  const { spec, declared } = resolved
  const taken = new Set(names.values())
  const open = new Map<string, string>()
  for (const { source } of allReads(resolved)) {
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

/**
 * Checks names of inputs. A step may write onto the name of an input, but then other steps read the request's value under that
 * name.
 */
function checkInputNames(o: {
  readonly resolved: ResolvedSpec
  readonly names: TensorNames
  readonly report: Report
}): void {
  const { spec } = o.resolved
  const inputs = new Set(spec.inputs.map((input) => input.name))
  for (const index of spec.steps.keys()) {
    for (const { source, path } of stepReads(o.resolved, index)) {
      const name = o.names.get(sourceKeyOf(source)) ?? ''
      if (source.kind === 'input' || !inputs.has(name)) continue
      const problem = `what ${stepPath(spec, source.step)} makes has the name of the input '${name}', so that ${stepPath(spec, index)} cannot read it; want another name`
      o.report('OutputInvalid', path, problem)
    }
  }
}
