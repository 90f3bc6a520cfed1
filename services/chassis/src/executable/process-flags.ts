import type { FlagTable, FlagValues } from '../flags/flag-spec.ts'
import { LOG_FORMATS, type LogSettings } from '../log/log-settings.ts'

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
    max: 2 ** 31 - 1,
    default: 0,
    words: { true: 1, false: 0 },
    description: 'Above 0: log lines of level debug.',
  },
  'log-info': { type: 'bool', default: true, description: 'Log lines of level info.' },
  'log-warning': { type: 'bool', default: true, description: 'Log lines of level warn.' },
  'log-error': { type: 'bool', default: true, description: 'Log lines of level error.' },
  'log-format': {
    type: 'enum',
    values: LOG_FORMATS,
    default: 'json',
    description: "Form of log lines: JSON, or one of tritonserver's two.",
  },
  'log-file': {
    type: 'string',
    path: 'file',
    default: '',
    description: 'File that log lines are appended to, in place of standard output.',
  },
  version: {
    type: 'bool',
    default: false,
    description: "Print the program's name and version, and exit.",
  },
} as const satisfies FlagTable

export type ProcessFlags = FlagValues<typeof PROCESS_FLAGS>

/** Flags of PROCESS_FLAGS that say what is logged, and where. */
export type LogFlags = Omit<ProcessFlags, 'exit-timeout-secs' | 'version' | 'log-file'> &
  Partial<Pick<ProcessFlags, 'log-file'>>

/** Converts the flags to the log settings that the process starts with. */
export function toLogSettings(flags: LogFlags): LogSettings {
  return {
    file: flags['log-file'] ?? '',
    error: flags['log-error'],
    warning: flags['log-warning'],
    info: flags['log-info'],
    verboseLevel: flags['log-verbose'],
    format: flags['log-format'],
  }
}

/** Share of the grace period for requests in flight; the rest is for telling those that are left that the server stops. */
const DRAIN_SHARE = 0.9

/** Computes how long requests in flight may take after the first signal, in milliseconds: 90 % of `exit-timeout-secs`. */
export function toDrainMs(flags: ProcessFlags): number {
  return flags['exit-timeout-secs'] * 1000 * DRAIN_SHARE
}
