import type { FlagTable } from '@tutti/chassis'

/** The flag for who may call the listeners. Listeners for requests from outside have other rules. */
export const ACCESS_FLAGS = {
  'access-file': {
    type: 'string',
    path: 'file',
    description:
      'YAML file of identities: their tokens or certificates, models and quotas. Calls of all others are refused, health apart. It is read again when it changes. Default: everybody may call everything.',
  },
} as const satisfies FlagTable
