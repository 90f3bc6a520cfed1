import type { ModelConfig } from '@tutti/model-config'
import type { StepTensor, TensorDefinition } from '../check/find-tensor-faults.ts'
import { hintOf } from '../check/problem.ts'
import type { Words } from '../check/words.ts'

/** The words of an ensemble's config.pbtxt. */
export class ConfigWords implements Words {
  readonly maxBatchSize = 'max_batch_size'
  readonly inputMap = 'input_map'
  readonly wantedOutput = 'want an output_map'
  readonly noModel = 'there is no model'
  readonly #config: ModelConfig

  constructor(config: ModelConfig) {
    this.#config = config
  }

  step(index: number): string {
    return `ensemble_scheduling.step[${index}]`
  }

  stepName(index: number): string {
    const model = this.#config.ensemble_scheduling?.step[index]?.model_name
    return `step[${index}] (${model})`
  }

  model(index: number): string {
    return `${this.step(index)}.model_name`
  }

  modelName(index: number): string {
    return this.model(index)
  }

  version(index: number): string {
    return `${this.step(index)}.model_version`
  }

  tensor({ step, side, name }: StepTensor): string {
    return `${this.step(step)}.${side}_map[${name}]`
  }

  input(index: number): string {
    return `input[${index}].name`
  }

  output(index: number): string {
    return `output[${index}]`
  }

  definition(tensor: string, { at }: TensorDefinition): string {
    if (at !== undefined) return `'${tensor}' of ${this.tensor(at)}`
    const isInput = this.#config.input.some(({ name }) => name === tensor)
    return `the ${isInput ? 'input' : 'output'} '${tensor}'`
  }

  portHint({ name }: StepTensor, names: readonly string[]): string {
    return hintOf(name, names)
  }
}
