import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'
import { RateLimiter, type ResourceCount } from './rate-limiter.ts'

const FLAG = '--rate-limit-resource'

/** tritonserver's flags of the rate limiter. */
export const LIMITER_FLAGS = {
  'rate-limit': {
    type: 'enum',
    values: ['off', 'execution_count'],
    default: 'off',
    description:
      'execution_count: instances wait for the resources of their rate_limiter, by priority. off: rate_limiter has no effect.',
  },
  'rate-limit-resource': {
    type: 'string',
    repeatable: true,
    description:
      'NAME:COUNT or NAME:COUNT:DEVICE: how much there is of a resource. Default: the most that an instance wants. Repeat the flag for more.',
  },
} as const satisfies FlagTable

export type LimiterFlags = FlagValues<typeof LIMITER_FLAGS>

/**
 * Opens the rate limiter that the flags ask for.
 *
 * @returns undefined if it is off; then counts of resources have no effect, as in Triton.
 * @throws ServeError FLAG_INVALID
 */
export function openLimiter(flags: LimiterFlags): RateLimiter | undefined {
  const given = flags['rate-limit-resource'].map(readCount)
  return flags['rate-limit'] === 'execution_count' ? new RateLimiter(given) : undefined
}

function readCount(text: string): ResourceCount {
  const [, name = '', count = '', device] = /^([^:]+):(\d{1,9})(?::(\d{1,4}))?$/.exec(text) ?? []
  if (name === '') throw flagRefusal(FLAG, `got "${text}", want NAME:COUNT or NAME:COUNT:DEVICE`)
  const counted = { name, count: Number(count) }
  return device === undefined ? counted : { ...counted, device: Number(device) }
}
