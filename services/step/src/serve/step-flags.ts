import { type FlagTable, type FlagValues, PROCESS_FLAGS } from '@tutti/chassis'
import { POLL_FLAGS, SERVER_FLAGS } from '@tutti/server'
import { BROKER_FLAGS } from '@tutti/transport'
import { MODEL_FLAGS } from './model-flags.ts'

const { 'model-repository': repository, ...loading } = MODEL_FLAGS

/** The flags of `tutti-step` and `tutti step`. */
export const STEP_FLAGS = {
  'model-repository': repository,
  'model-directory': {
    type: 'string',
    repeatable: true,
    description:
      'NAME=DIR: serve the model whose own directory is DIR, the one with config.pbtxt and 1/, as NAME. Beside or instead of repositories.',
  },
  'model-overrides': {
    type: 'string',
    repeatable: true,
    description:
      'NAME=JSON: what a Model says in place of the config.pbtxt of NAME: modelFormat, maxBatchSize, versionPolicy, instances, inputs, outputs, batching, warmup.',
  },
  model: {
    type: 'string',
    repeatable: true,
    description: 'Serve only this model; several may be given. Default: all that are no ensembles.',
  },
  ...BROKER_FLAGS,
  ...POLL_FLAGS,
  ...loading,
  ...SERVER_FLAGS,
  ...PROCESS_FLAGS,
} as const satisfies FlagTable

export type StepFlags = FlagValues<typeof STEP_FLAGS>
