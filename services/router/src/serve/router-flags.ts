import { type FlagTable, type FlagValues, PROCESS_FLAGS } from '@tutti/chassis'
import { CONTROL_FLAGS, DOOR_FLAGS } from '@tutti/front-door'
import { BROKER_FLAGS } from '@tutti/transport'
import { NESTING_FLAGS } from './nesting-flags.ts'

/** The flags of `tutti-router` and `tutti router`. */
export const ROUTER_FLAGS = {
  'model-repository': {
    type: 'string',
    repeatable: true,
    aliases: ['model-store'],
    description: 'Folder that holds ensembles; other models there are left to the steps.',
  },
  'model-config-name': {
    type: 'string',
    description: 'Read configs/NAME.pbtxt of a model instead of config.pbtxt where it exists.',
  },
  ...CONTROL_FLAGS,
  ...BROKER_FLAGS,
  'strict-readiness': {
    type: 'bool',
    default: true,
    description:
      'Ready only if every known model version is and no ensemble waits for a model; false: ready as soon as the server serves.',
  },
  ...NESTING_FLAGS,
  ...DOOR_FLAGS,
  ...PROCESS_FLAGS,
} as const satisfies FlagTable

export type RouterFlags = FlagValues<typeof ROUTER_FLAGS>
