import type { EnsembleSpec } from '@tutti/api'
import { tensorsOfCondition } from '../conditions.ts'
import {
  type EnsembleReferences,
  type GraphRead,
  type KnownSource,
  type Report,
  stepPath,
} from './ensemble-references.ts'

/** The references of the fields of a step beside those that feed its inputs. */
export interface StepControls {
  /** Tensors that conditions and counts read, by the names that they have there. */
  readonly tensors: ReadonlyMap<string, GraphRead>
  /** Outputs of the step itself that `until` reads, by the names that they have there. */
  readonly own: ReadonlyMap<string, string>
  /** Outputs of the step itself that `carry` hands on, by input. */
  readonly carry: ReadonlyMap<string, string>
}

/** Resolves what a condition, a count and a loop read. A text that cannot be read is left to the checker. */
export function readControls(o: {
  readonly spec: EnsembleSpec
  readonly references: EnsembleReferences
  readonly report: Report
  readonly index: number
  readonly partial: Set<number>
}): StepControls {
  const { spec, references, index, partial } = o
  const { when, forEach, loop } = spec.steps[index] ?? {}
  const at = stepPath(spec, index)
  const tensors = new Map<string, GraphRead>()
  const own = new Map<string, string>()
  const resolve = (name: string, path: string, take: (source: KnownSource) => void): void => {
    const source = references.resolve(name, path, 'input')
    if (source === undefined) partial.add(index)
    else take(source)
  }
  for (const name of tensorsOfCondition(when ?? '')) {
    const path = `${at}.when`
    resolve(name, path, (source) => tensors.set(name, { source, path }))
  }
  if (forEach?.count !== undefined) {
    const { count } = forEach
    const path = `${at}.forEach.count`
    resolve(count, path, (source) => tensors.set(count, { source, path }))
  }
  for (const name of tensorsOfCondition(loop?.until ?? '')) {
    const path = `${at}.loop.until`
    resolve(name, path, (source) => {
      if (source.kind === 'made' && source.step === index) own.set(name, source.output)
      else tensors.set(name, { source, path })
    })
  }
  return { tensors, own, carry: readCarry(o, resolve) }
}

function readCarry(
  { spec, index, report }: Parameters<typeof readControls>[0],
  resolve: (name: string, path: string, take: (source: KnownSource) => void) => void,
): ReadonlyMap<string, string> {
  const carry = new Map<string, string>()
  for (const [input, name] of Object.entries(spec.steps[index]?.loop?.carry ?? {})) {
    const path = `${stepPath(spec, index)}.loop.carry[${input}]`
    resolve(name, path, (source) => {
      if (source.kind === 'made' && source.step === index) carry.set(input, source.output)
      else report('RepeatInvalid', path, `got '${name}', want an output of the step itself`)
    })
  }
  return carry
}
