import type { ModelConfig, ModelInput, ModelOutput } from '../model/model-config.ts'
import { emptyModelConfig } from '../text/parse-model-config.ts'
import { modelInput, modelOutput } from './declared-tensors.ts'

interface TensorDraft {
  readonly name: string
  readonly data_type?: ModelInput['data_type']
  readonly dims?: readonly number[]
  readonly reshape?: { readonly shape: readonly number[] }
  readonly optional?: boolean
}

/** A config as a test writes it. */
export type ConfigDraft = Partial<Omit<ModelConfig, 'input' | 'output'>> & {
  readonly input?: readonly TensorDraft[]
  readonly output?: readonly TensorDraft[]
}

/** A complete config; tensors are FP32 [4] unless they say otherwise. */
export function modelConfig(draft: ConfigDraft = {}): ModelConfig {
  return {
    ...emptyModelConfig('model'),
    backend: 'onnxruntime',
    ...draft,
    input: (draft.input ?? []).map(toInput),
    output: (draft.output ?? []).map(toOutput),
  }
}

function toInput({ name, ...draft }: TensorDraft): ModelInput {
  return modelInput(name, 'TYPE_FP32', [4], draft)
}

function toOutput(draft: TensorDraft): ModelOutput {
  const { name, optional: _, ...rest } = draft
  return modelOutput(name, 'TYPE_FP32', [4], rest)
}
