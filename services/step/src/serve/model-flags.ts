import type { FlagTable, FlagValues } from '@tutti/chassis'
import { openDevices } from './open-devices.ts'

/** The flags of every executable that loads models: tritonserver's names and defaults where it has the flag. */
export const MODEL_FLAGS = {
  'model-repository': {
    type: 'string',
    repeatable: true,
    aliases: ['model-store'],
    description: 'Folder that holds models; several may be given.',
  },
  'strict-readiness': {
    type: 'bool',
    default: true,
    description:
      'Ready only if every model version that was to be loaded is; false: ready as soon as the server serves.',
  },
  'exit-on-error': {
    type: 'bool',
    default: false,
    description: 'End at the start if a model cannot be loaded. tritonserver defaults to true.',
  },
  'disable-auto-complete-config': {
    type: 'bool',
    default: false,
    description:
      'Complete nothing from the model file: a config.pbtxt is needed and must be whole.',
  },
  'model-config-name': {
    type: 'string',
    description: 'Read configs/NAME.pbtxt of a model instead of config.pbtxt where it exists.',
  },
  'model-load-thread-count': {
    type: 'int',
    min: 1,
    max: 64,
    default: 4,
    description: 'Models that are loaded at the same time.',
  },
  'backend-config': {
    type: 'string',
    repeatable: true,
    description:
      'BACKEND,SETTING=VALUE. Known: onnxruntime,default-max-batch-size=N (default 4); of python and pytorch: services/backends/README.md.',
  },
  accelerator: {
    type: 'string',
    description:
      'RESOURCE=COUNT, e.g. nvidia.com/gpu=1: devices that this process was given; it uses no more. KIND_AUTO means them, and the CPU without.',
  },
  'max-queue-size': {
    type: 'int',
    min: 1,
    max: 1_000_000,
    default: 4096,
    unit: 'requests',
    description:
      'Bound of a model’s queue where its config names none; above it requests fail at once.',
  },
} as const satisfies FlagTable

export type ModelFlags = FlagValues<typeof MODEL_FLAGS>

/**
 * How the flags want models to be loaded.
 *
 * @param env - of the process, for what a device plugin has set there.
 * @throws ServeError FLAG_INVALID for `--accelerator`.
 */
export function toStepSettings(
  flags: ModelFlags,
  env: Readonly<Record<string, string | undefined>> | undefined,
) {
  return {
    devices: openDevices(flags.accelerator, env),
    autoComplete: !flags['disable-auto-complete-config'],
    loadParallelism: flags['model-load-thread-count'],
    maxQueuedRequests: flags['max-queue-size'],
  }
}
