import type { FlagTable } from '@tutti/chassis'

/**
 * The flags for when a process loads models, with tritonserver's names and defaults. The mode `explicit`, in which clients load
 * and unload, is missing here: only servers of one process have it.
 */
export const POLL_FLAGS = {
  'model-control-mode': {
    type: 'enum',
    values: ['none', 'poll'],
    default: 'none',
    description:
      'none: load everything at the start. poll: also follow changes in the repositories. Only tutti serve has explicit.',
  },
  'repository-poll-secs': {
    type: 'int',
    min: 1,
    max: 86_400,
    default: 15,
    unit: 's',
    description: 'Time between two comparisons of the repositories, in the mode poll.',
  },
} as const satisfies FlagTable
