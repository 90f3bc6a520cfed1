import type { FlagTable, FlagValues } from '@tutti/chassis'
import { CONNECTION_FLAGS, REQUEST_FLAGS, URL_FLAG } from '@tutti/command-line/client'
import { FORMAT_FLAG } from '@tutti/command-line/command'

/** The flags of `tutti bench`. */
export const BENCH_FLAGS = {
  ...REQUEST_FLAGS,
  url: {
    ...URL_FLAG,
    repeatable: true,
    description: `${URL_FLAG.description} Repeat the flag to compare servers: they take turns.`,
  },
  concurrency: {
    type: 'string',
    description:
      'Requests that are always in flight; 1,4,16 measures each of them. Default: 1, without --rate.',
  },
  rate: {
    type: 'string',
    description:
      'Requests per second, at random times, however long the server takes; 100,200 measures each of them. Latencies count from when a request was due.',
  },
  'max-in-flight': {
    type: 'int',
    min: 1,
    max: 100_000,
    default: 1000,
    unit: 'requests',
    description: 'Requests of --rate in flight at most. Further ones wait.',
  },
  duration: {
    type: 'int',
    min: 1,
    max: 86_400,
    default: 10,
    unit: 's',
    description: 'Time for which each load is measured, on each server.',
  },
  'warm-up': {
    type: 'int',
    min: 0,
    max: 3600,
    default: 2,
    unit: 's',
    description: 'Time under load before the measurement.',
  },
  ...CONNECTION_FLAGS,
  format: FORMAT_FLAG,
} as const satisfies FlagTable

export type BenchFlags = FlagValues<typeof BENCH_FLAGS>
