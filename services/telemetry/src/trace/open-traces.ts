import { type Clock, type Logger, limitLog } from '@tutti/chassis'
import type { RequestObserver } from '@tutti/tensor'
import { traceRequests } from './request-traces.ts'
import { TraceFile } from './trace-file.ts'
import type { TraceConfig } from './trace-flags.ts'

/** Traces of clients' requests in files. */
export interface Traces {
  readonly observer: RequestObserver
  /** Completes the file. */
  close(): void
}

/** Opens the trace file that the flags name. @returns undefined where they name none. */
export function openTraces(
  trace: TraceConfig,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Traces | undefined {
  if (trace.mode !== 'triton' || trace.settings.file === '') return undefined
  const { settings } = trace
  const file = new TraceFile({ path: settings.file, log: limitLog(log, { clock }) })
  return { observer: traceRequests({ settings, file, clock }), close: () => file.close() }
}
