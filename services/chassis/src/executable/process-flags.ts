import type { FlagTable, FlagValues } from '../flag-spec.ts'
import type { LogLevel } from '../log.ts'

/** The flags of every executable that serves; names and defaults are tritonserver's where it has them. */
export const PROCESS_FLAGS = {
  'exit-timeout-secs': {
    type: 'int',
    min: 0,
    max: 86_400,
    default: 30,
    unit: 's',
    description: 'Time for requests in flight after SIGTERM or SIGINT. Then they fail.',
  },
  'log-verbose': {
    type: 'int',
    min: 0,
    max: 10,
    default: 0,
    description: 'Above 0: log lines of level debug.',
  },
  'log-info': { type: 'bool', default: true, description: 'Log lines of level info.' },
  'log-warning': { type: 'bool', default: true, description: 'Log lines of level warn.' },
  version: {
    type: 'bool',
    default: false,
    description: "Print the program's name and version, and exit.",
  },
} as const satisfies FlagTable

export type ProcessFlags = FlagValues<typeof PROCESS_FLAGS>

/** Those of them that say what is logged. */
export type LogFlags = Omit<ProcessFlags, 'exit-timeout-secs' | 'version'>

/** The lowest level that is logged. */
export function toLogLevel(flags: LogFlags): LogLevel {
  if (flags['log-verbose'] > 0) return 'debug'
  if (flags['log-info']) return 'info'
  return flags['log-warning'] ? 'warn' : 'error'
}

/** Of the grace period, for requests in flight; the rest is for telling those that are left that the server stops. */
const DRAIN_SHARE = 0.9

/** How long requests in flight may take after the first signal, in milliseconds. */
export function toDrainMs(flags: ProcessFlags): number {
  return flags['exit-timeout-secs'] * 1000 * DRAIN_SHARE
}
