import type { EnsembleSpec } from '@tutti/api'
import { nearestName } from '@tutti/errors'
import { type AcceptedReason, hintOf } from '../check/problem.ts'
import type { TensorSource } from '../graph.ts'

/** A source that is known. */
export type KnownSource = Exclude<TensorSource, { readonly kind: 'unknown' }>

/** A reference to a tensor, in an input of a step, its condition, or an output of the ensemble. */
export interface GraphRead {
  readonly source: KnownSource
  /** Path of the field that has the reference. */
  readonly path: string
}

/** Takes a problem of a reference, which is then left out. */
export type Report = (reason: AcceptedReason, path: string, message: string) => void

/** Builds a key of a source. Sources of the same tensor have equal keys. */
export function sourceKeyOf(source: KnownSource): string {
  return source.kind === 'input' ? `input ${source.name}` : `made ${source.step} ${source.output}`
}

/** Builds the path of a step in a manifest: `steps[2](ocr)`. */
export function stepPath(spec: EnsembleSpec, index: number): string {
  return `steps[${index}](${spec.steps[index]?.name ?? ''})`
}

/**
 * Resolves the references of one Ensemble. Faults go to `report`. Inputs and steps that a faulty reference may mean go to
 * `meant`.
 */
export class EnsembleReferences {
  /**
   * Names of inputs and indexes of steps that a reported reference may mean. If nothing reads one of them, the cause may be
   * that reference.
   */
  readonly meant: ReadonlySet<string | number>
  readonly #meant = new Set<string | number>()
  readonly #spec: EnsembleSpec
  readonly #report: Report
  readonly #inputs: ReadonlySet<string>
  readonly #steps = new Map<string, number>()
  /** Outputs of steps, by the name that an outputMap gives. */
  readonly #made = new Map<string, { readonly kind: 'made'; step: number; output: string }>()

  /** Collects the tensors of an Ensemble, and reports each tensor that two steps make. */
  constructor(spec: EnsembleSpec, report: Report) {
    this.#spec = spec
    this.#report = report
    this.meant = this.#meant
    this.#inputs = new Set(spec.inputs.map((input) => input.name))
    for (const [index, step] of spec.steps.entries()) {
      this.#steps.set(step.name, index)
      for (const [output, name] of Object.entries(step.outputMap ?? {})) {
        const other = this.#made.get(name)
        if (other !== undefined) {
          const path = `${stepPath(spec, index)}.outputMap[${output}]`
          const maker = `${stepPath(spec, other.step)}.outputMap[${other.output}]`
          const problem = `'${name}' is what ${maker} makes; want another name`
          report('MultipleProducers', path, problem)
          this.mean(index)
          continue
        }
        this.#made.set(name, { kind: 'made', step: index, output })
      }
    }
  }

  /** Finds the index of a step; reports UnknownStep and returns undefined if there is none. */
  step(name: string, path: string): number | undefined {
    const index = this.#steps.get(name)
    if (index !== undefined) return index
    this.#report('UnknownStep', path, `no step '${name}'${hintOf(name, this.#steps.keys())}`)
    return this.mean(this.#nearestStep(name))
  }

  /** Notes the step or the declared tensor that a reported reference may mean. A number is a step, a text is a tensor. */
  mean(what: number | string | undefined): undefined {
    if (typeof what === 'number') this.#meant.add(what)
    if (typeof what !== 'string') return
    for (const source of this.#declared(what)) {
      this.#meant.add(source.kind === 'input' ? source.name : source.step)
    }
  }

  #nearestStep(name: string): number | undefined {
    return this.#steps.get(nearestName(name, this.#steps.keys()) ?? '')
  }

  isStep(name: string): boolean {
    return this.#steps.has(name)
  }

  /** Tells whether `resolve` would find something. */
  isKnown(reference: string): boolean {
    const { step } = split(reference)
    return this.#declared(reference).length > 0 || (step !== undefined && this.#steps.has(step))
  }

  #declared(name: string): KnownSource[] {
    const made = this.#made.get(name)
    const inputs = this.#inputs.has(name) ? [{ kind: 'input', name } as const] : []
    return made === undefined ? inputs : [...inputs, made]
  }

  /**
   * Finds the source of a reference. If there is none, or more than one, it reports that and returns undefined.
   *
   * @param path - path of the field that has the reference.
   * @param first - the kind that wins if a step writes to the name of an input. A step reads the request's value; an output is
   *   the value that the step wrote.
   */
  resolve(reference: string, path: string, first: KnownSource['kind']): KnownSource | undefined {
    const declared = this.#declared(reference)
    const found = declared.find((source) => source.kind === first) ?? declared[0]
    const { step = '', output } = split(reference)
    const index = this.#steps.get(step)
    const direct =
      index === undefined ? undefined : ({ kind: 'made', step: index, output } as const)
    if (found === undefined) return direct ?? this.#fail(reference, path)
    if (
      direct === undefined ||
      declared.some((source) => sourceKeyOf(source) === sourceKeyOf(direct))
    ) {
      return found
    }
    const problem = `'${reference}' is an ensemble tensor and may be the output '${output}' of the step '${step}'; want another name for one of them`
    this.#report('AmbiguousReference', path, problem)
    this.mean(index)
    return this.mean(reference)
  }

  #fail(reference: string, path: string): undefined {
    const { step } = split(reference)
    const index = this.#steps.get(reference)
    const tensors = [...this.#inputs, ...this.#made.keys()]
    if (index !== undefined) {
      const [output = 'OUTPUT'] = Object.keys(this.#spec.steps[index]?.outputMap ?? {})
      const problem = `got the step '${reference}', want one of its outputs, e.g. '${reference}.${output}'`
      this.#report('UnknownTensor', path, problem)
      return this.mean(index)
    }
    if (step !== undefined && !tensors.some((name) => name.startsWith(`${step}.`))) {
      const hint = hintOf(step, this.#steps.keys())
      const problem = `'${reference}': no ensemble tensor of that name and no step '${step}'${hint}`
      this.#report('UnknownStep', path, problem)
      return this.mean(this.#nearestStep(step))
    }
    const problem = `no ensemble tensor '${reference}'${hintOf(reference, tensors)}`
    this.#report('UnknownTensor', path, problem)
    return this.mean(nearestName(reference, tensors))
  }
}

/** Splits a reference at the first dot; step names have none. */
function split(reference: string): { readonly step?: string; readonly output: string } {
  const dot = reference.indexOf('.')
  if (dot === -1) return { output: reference }
  return { step: reference.slice(0, dot), output: reference.slice(dot + 1) }
}
