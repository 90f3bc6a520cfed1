import { type FlagTable, type FlagValues, PROCESS_FLAGS } from '@tutti/chassis'
import { DOOR_FLAGS } from '@tutti/front-door'
import { BROKER_FLAGS } from '@tutti/transport'

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
  ...BROKER_FLAGS,
  'strict-readiness': {
    type: 'bool',
    default: true,
    description:
      'Ready only if every known model version is and no ensemble waits for a model; false: ready as soon as the server serves.',
  },
  ...DOOR_FLAGS,
  ...PROCESS_FLAGS,
} as const satisfies FlagTable

export type RouterFlags = FlagValues<typeof ROUTER_FLAGS>
