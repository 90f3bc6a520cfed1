import type { ModelConfig } from '@tutti/model-config'
import type { StepTensor, TensorDefinition } from '../check/find-tensor-faults.ts'
import { hintOf } from '../check/problem.ts'
import type { Words } from '../check/words.ts'
import { type GraphRead, sourceKeyOf, stepPath } from './ensemble-references.ts'
import { allReads, type ResolvedSpec } from './resolve-references.ts'

/** The words of an Ensemble manifest. */
export class ManifestWords implements Words {
  readonly maxBatchSize = 'maxBatchSize'
  readonly inputMap: string
  readonly wantedOutput = 'want one of its outputs in `outputs` or read by a step'
  readonly noModel = 'no Model or Ensemble serves'
  readonly #resolved: ResolvedSpec
  readonly #config: Pick<ModelConfig, 'input' | 'output'>
  readonly #isFallback: boolean

  /** @param o.isFallback - they are of the fallbacks of steps. */
  constructor(
    resolved: ResolvedSpec,
    config: Pick<ModelConfig, 'input' | 'output'>,
    o: { readonly isFallback?: boolean } = {},
  ) {
    this.#resolved = resolved
    this.#config = config
    this.#isFallback = o.isFallback ?? false
    this.inputMap = this.#isFallback ? 'inputMap of the step' : 'inputMap'
  }

  step(index: number): string {
    const path = stepPath(this.#resolved.spec, index)
    return this.#isFallback ? `${path}.onError.fallback` : path
  }

  stepName(index: number): string {
    return this.#resolved.spec.steps[index]?.name ?? ''
  }

  model(index: number): string {
    const step = this.#resolved.spec.steps[index]
    const callee = this.#isFallback ? step?.onError?.fallback : step
    const ref = callee?.modelRef === undefined ? 'ensembleRef' : 'modelRef'
    return `${this.step(index)}.${this.#builtin(index) === undefined ? ref : 'builtin'}`
  }

  modelName(index: number): string {
    return `${this.model(index)}.${this.#builtin(index) === undefined ? 'name' : 'model'}`
  }

  #builtin(index: number) {
    return this.#isFallback ? undefined : this.#resolved.spec.steps[index]?.builtin
  }

  version(index: number): string {
    return `${this.model(index)}.version`
  }

  /** An output stands in the outputMap of the step that makes it, else where it is given out, which may declare its type, or read first. */
  tensor({ step, side, name }: StepTensor): string {
    const { inputs, declared } = this.#resolved
    // A fallback has the tensors of its step, and does not name them.
    if (this.#isFallback) return this.model(step)
    const stepAt = this.step(step)
    if (side === 'input') return inputs[step]?.get(name)?.path ?? stepAt
    if (declared[step]?.has(name) === true) return `${stepAt}.outputMap[${name}]`
    const key = sourceKeyOf({ kind: 'made', step, output: name })
    const isIt = ({ source }: GraphRead): boolean => sourceKeyOf(source) === key
    const given = this.#resolved.outputs
      .flatMap((output) => (output?.reads.length === 1 ? output.reads : []))
      .find(isIt)
    return (given ?? allReads(this.#resolved).find(isIt))?.path ?? stepAt
  }

  input(index: number): string {
    return `inputs[${index}](${this.#config.input[index]?.name})`
  }

  output(index: number): string {
    return `outputs[${index}](${this.#config.output[index]?.name})`
  }

  definition(tensor: string, { at }: TensorDefinition): string {
    if (at?.side === 'input') return this.tensor(at)
    if (at !== undefined) return `${this.stepName(at.step)}.${at.name}`
    const { input, output } = this.#config
    const index = input.findIndex(({ name }) => name === tensor)
    if (index !== -1) return this.input(index)
    return `outputs[${output.findIndex(({ name }) => name === tensor)}](${tensor})`
  }

  portHint({ step, side, name }: StepTensor, names: readonly string[]): string {
    if (this.#isFallback) return `, which the step needs${hintOf(name, names)}`
    const declared = side === 'output' ? this.#resolved.declared[step]?.get(name) : undefined
    return declared !== undefined && names.includes(declared)
      ? `; outputMap goes from the model's output to the ensemble's tensor: want {${declared}: ${name}}`
      : hintOf(name, names)
  }
}
