import { type FlagTable, type FlagValues, PROCESS_FLAGS } from '@tutti/chassis'
import { CACHE_FLAGS } from '@tutti/response-cache'
import { POLL_FLAGS, SERVER_FLAGS } from '@tutti/server'
import { METRICS_FLAGS } from '@tutti/telemetry'
import { BROKER_FLAGS, DIRECT_LISTENER_FLAGS } from '@tutti/transport'
import { MODEL_FLAGS } from './model-flags.ts'

const { 'model-repository': repository, ...loading } = MODEL_FLAGS

/** The flags of `tutti-step` and `tutti step`. */
export const STEP_FLAGS = {
  'model-repository': repository,
  'model-directory': {
    type: 'string',
    path: 'folder',
    repeatable: true,
    description:
      'NAME=DIR: serve the model folder DIR (with config.pbtxt and 1/) as NAME, beside or instead of repositories. Repeat the flag for more.',
  },
  'model-overrides': {
    type: 'string',
    repeatable: true,
    description:
      "NAME=JSON: fields of a Model that replace those of NAME's config.pbtxt: modelFormat, maxBatchSize, versionPolicy, instances, inputs, outputs, batching, warmup.",
  },
  model: {
    type: 'string',
    repeatable: true,
    description:
      'Serve only this model. Repeat the flag for more. Default: all models except ensembles.',
  },
  ensemble: {
    type: 'string',
    repeatable: true,
    description:
      'Serve the models that the steps of this ensemble run, those of nested ensembles too: steps that follow each other are one request then. Repeat the flag for more.',
  },
  builtins: {
    type: 'bool',
    default: false,
    description: 'Run built-in steps of ensembles. No repository is needed for them.',
  },
  ...BROKER_FLAGS,
  ...DIRECT_LISTENER_FLAGS,
  ...POLL_FLAGS,
  ...loading,
  ...CACHE_FLAGS,
  ...SERVER_FLAGS,
  ...METRICS_FLAGS,
  ...PROCESS_FLAGS,
} as const satisfies FlagTable

export type StepFlags = FlagValues<typeof STEP_FLAGS>
