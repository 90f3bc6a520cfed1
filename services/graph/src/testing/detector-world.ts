import { parsedEnsemble } from '@tutti/api/testing'
import type { ModelConfig } from '@tutti/model-config'
import { checkEnsemble, type EnsembleCheck } from '../validate/check-manifest.ts'
import type { EnsembleWorld } from '../validate/find-models.ts'
import { ensembleConfig, modelConfig, stepConfig } from './configs.ts'

export type Spec = Readonly<Record<string, unknown>>

/** UINT8 pictures -> crops and boxes. */
export const detector = modelConfig({
  name: 'detector',
  input: [{ name: 'image', data_type: 'TYPE_UINT8', dims: [-1, -1, 3] }],
  output: [
    { name: 'crops', data_type: 'TYPE_UINT8', dims: [-1, -1, 3] },
    { name: 'boxes', dims: [-1, 4] },
  ],
})
const reader = modelConfig({
  name: 'reader',
  max_batch_size: 8,
  input: [
    { name: 'image', dims: [3, 32, 100] },
    { name: 'bias', dims: [1], optional: true },
  ],
  output: [{ name: 'text', data_type: 'TYPE_STRING', dims: [1] }],
})
const nested = ensembleConfig({
  name: 'nested',
  input: [{ name: 'image', data_type: 'TYPE_UINT8', dims: [-1, -1, 3] }],
  output: [{ name: 'boxes', dims: [-1, 4] }],
  steps: [stepConfig('detector', { image: 'image' }, { boxes: 'boxes' })],
})
const decoupled = modelConfig({
  ...detector,
  name: 'decoupled',
  model_transaction_policy: { decoupled: true },
})

const CONFIGS = new Map(
  [detector, reader, nested, decoupled].map((config): [string, ModelConfig] => [
    config.name,
    config,
  ]),
)

const WORLD: EnsembleWorld = {
  lookup: (name) => {
    const config = CONFIGS.get(name)
    if (config !== undefined) return { config, readyVersions: [1, 2] }
    if (name.startsWith('later')) return 'pending'
    return name.startsWith('absent') ? 'absent' : 'unknown'
  },
  names: () => CONFIGS.keys(),
  resourceNamed: (name) =>
    name.endsWith('the-detector') ? { kind: 'Model', servedName: 'detector' } : undefined,
}

/** A step that runs `detector`. */
export const detect = { name: 'det', modelRef: { name: 'detector' }, inputMap: { image: 'image' } }
export const image = { name: 'image', datatype: 'UINT8', shape: [-1, -1, 3] }
/** The spec of an Ensemble of that step alone. */
export const BOXES = {
  inputs: [image],
  outputs: [{ name: 'boxes', from: 'det.boxes' }],
  steps: [detect],
}

/** Checks an Ensemble of BOXES with `spec` over it, against the models of this file: `later...` is pending, `absent...` is absent. */
export function checkOver(spec: Spec, world: Partial<EnsembleWorld> = {}): EnsembleCheck {
  return checkEnsemble(parsedEnsemble('e', { ...BOXES, ...spec }), { ...WORLD, ...world })
}
