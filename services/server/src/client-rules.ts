import type { Clock, FlagValues, Logger } from '@tutti/chassis'
import { AccessFile, type AccessFileOptions, type SelectorDecorator } from '@tutti/serving'
import { openTraces, readTraceFlags, type TRACE_FLAGS } from '@tutti/telemetry'
import type { ServersOptions } from './servers.ts'

/**
 * Opens the files that the flags name for calls of clients: the access file, and the files for traces.
 *
 * @param o.headerRules - a decorator for the selectors of calls; absent: none.
 * @param o.offersTraces - true if clients may change trace settings even where the flags name no file.
 * @param o.opened - closes the files.
 * @throws ServeError FLAG_INVALID if a file cannot be read or does not fit.
 */
export async function openClientRules(
  flags: AccessFileOptions['flags'] & FlagValues<typeof TRACE_FLAGS>,
  o: {
    readonly headerRules?: SelectorDecorator
    readonly offersTraces?: boolean
    readonly clock: Clock
    readonly log: Logger
    readonly opened: AsyncDisposableStack
  },
): Promise<Pick<ServersOptions, 'identities' | 'decorators' | 'observers' | 'traceSettings'>> {
  const { headerRules, offersTraces = false, clock, log, opened } = o
  const trace = readTraceFlags(flags)
  const traces = openTraces(trace, { clock, log })
  opened.defer(async () => traces?.close())
  const access = await AccessFile.open({ flags, clock, log })
  opened.defer(async () => access?.close())
  const hasTraces = trace.mode === 'triton' && (offersTraces || traces !== undefined)
  return {
    identities: access?.identities,
    decorators: headerRules === undefined ? [] : [headerRules],
    observers: traces === undefined ? [] : [traces.observer],
    traceSettings: hasTraces ? trace.settings : undefined,
  }
}
