import type { FlagTable } from '@tutti/chassis'
import { CALLERS_LIMIT } from '@tutti/protocol'
import { NESTING_DEFAULTS } from '../requests/nested-requests.ts'

/** Bounds of the requests that models make to other models (Triton's BLS). */
export const NESTING_FLAGS = {
  'max-bls-depth': {
    type: 'int',
    min: 1,
    max: CALLERS_LIMIT,
    default: NESTING_DEFAULTS.maxDepth,
    unit: 'calls',
    description: 'Depth of calls from model to model within one request.',
  },
  'max-bls-requests': {
    type: 'int',
    min: 1,
    max: 1_000_000,
    default: NESTING_DEFAULTS.maxRequests,
    unit: 'requests',
    description:
      'Requests from models to other models at the same time. Further requests fail at once.',
  },
} as const satisfies FlagTable
