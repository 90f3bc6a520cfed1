import { ServeError } from '@tutti/errors'
import { renderHelp } from '../flags/flag-help.ts'
import type { FlagTable, FlagValues } from '../flags/flag-spec.ts'
import { flagRefusal, parseFlags, type RefusedFlags } from '../flags/flags.ts'
import { createLogger, type Logger } from '../log/log.ts'
import type { LogSettings } from '../log/log-settings.ts'
import { createHealth, type Health } from '../process/health.ts'
import { type GiveUp, type Running, runUntilSignal } from '../process/lifecycle.ts'
import { freeStartMemory } from '../runtime.ts'
import type { StatusLine } from '../terminal/status-line.ts'
import type { ProcessEnvironment } from './process-environment.ts'
import { type ProcessFlags, toLogSettings } from './process-flags.ts'
import { loadTracingSettings, type TracingSettings } from './tracing-settings.ts'

/** Options that the start of an executable gets: everything is read and checked. */
export interface StartOptions<T extends FlagTable> {
  readonly flags: FlagValues<T>
  readonly settings: TracingSettings
  /** The process's environment, for executables with settings of their own; none if absent. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly log: Logger
  /** Line that may show what is under way, as long as the start takes; absent if there is no terminal. */
  readonly statusLine?: StatusLine | undefined
  /** Health that the probes report. `start` holds it back while something keeps the process from being ready. */
  readonly health: Health
  /** Aborts when a stop signal comes before the start is done. */
  readonly signal: AbortSignal
  /** Stops the process, so that another takes its place; absent where something else runs it, such as a test. */
  readonly giveUp?: GiveUp
}

/** A program that serves until a signal ends it. */
export interface Executable<T extends FlagTable> {
  /** The name of the log, and what `--version` begins with. */
  readonly name: string
  /** Version of its package. */
  readonly version: string
  /** First line of `--help`. */
  readonly usage: string
  readonly flags: T
  /** Flags that users may expect here, and why there are none. */
  readonly refusedFlags?: RefusedFlags
  /** Picks the process flags from all flags. Returns `flags` itself where the table contains PROCESS_FLAGS. */
  processFlags(flags: FlagValues<T>): ProcessFlags
  /**
   * Checks the flags before anything starts. A refused command line ends the program with exit code 2.
   *
   * @throws ServeError FLAG_INVALID
   */
  check(flags: FlagValues<T>): void
  start(o: StartOptions<T>): Promise<Running>
}

/**
 * Reads the command line and the environment, prints help or the version if one is asked for, else serves until a signal comes.
 *
 * @returns the exit code.
 * @throws ServeError FLAG_INVALID or SETTING_INVALID for what was not understood.
 */
export async function runExecutable<const T extends FlagTable>(
  executable: Executable<T>,
  argv: readonly string[],
  environment: ProcessEnvironment,
): Promise<number> {
  const {
    values: flags,
    positionals,
    help,
  } = parseFlags(executable.flags, argv, executable.refusedFlags)
  if (help) {
    environment.out(renderHelp({ usage: executable.usage, flags: executable.flags }))
    return 0
  }
  const processFlags = executable.processFlags(flags)
  if (processFlags.version) {
    environment.out(`${executable.name} ${executable.version}\n`)
    return 0
  }
  if (positionals.length > 0) {
    throw new ServeError('FLAG_INVALID', `got '${positionals[0]}', want flags only`)
  }
  executable.check(flags)
  const settings = loadTracingSettings(environment.env)
  const health = createHealth()
  const { statusLine } = environment
  const logger = openLogger(executable.name, toLogSettings(processFlags), statusLine)
  logIgnored(executable.flags, flags, logger)
  return await runUntilSignal({
    start: async ({ signal, giveUp }) => {
      const given = { flags, settings, env: environment.env, log: logger, statusLine }
      const running = await executable.start({ ...given, health, signal, giveUp })
      // Before the process is ready: collecting takes a tenth of a second.
      freeStartMemory()
      return running
    },
    health,
    logger,
    signals: environment.signals,
    exit: (code, isBusy) => environment.exit(code, isBusy),
    graceMs: processFlags['exit-timeout-secs'] * 1000,
  })
}

/** Logs a line for each given flag that has no effect. */
export function logIgnored<T extends FlagTable>(
  table: T,
  flags: FlagValues<T>,
  logger: Logger,
): void {
  for (const [name, { isIgnored, description }] of Object.entries(table)) {
    const value: unknown = flags[name]
    const came = value !== undefined && !(Array.isArray(value) && value.length === 0)
    if (isIgnored && came) logger.info('flag has no effect', { flag: `--${name}`, description })
  }
}

function openLogger(name: string, settings: LogSettings, statusLine?: StatusLine): Logger {
  try {
    return createLogger({ name, settings, statusLine })
  } catch (cause) {
    throw flagRefusal('--log-file', ServeError.from(cause).message, cause)
  }
}
