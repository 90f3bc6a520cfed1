import { type Clock, type Logger, limitLog } from '@tutti/chassis'
import { type TraceConfig, TraceFile, type TraceSettings } from '@tutti/telemetry'
import type { SelectorDecorator } from '../backend/inference-backend.ts'
import { traceRequests } from './traced-backend.ts'

/** Traces of clients' requests in files. */
export interface Traces {
  readonly settings: TraceSettings
  readonly decorate: SelectorDecorator
  /** Completes the file. */
  close(): void
}

/** @returns undefined where the flags name no file. */
export function openTraces(
  trace: TraceConfig,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Traces | undefined {
  if (trace.mode !== 'triton' || trace.settings.file === '') return undefined
  const { settings } = trace
  const file = new TraceFile({ path: settings.file, log: limitLog(log, { clock }) })
  return {
    settings,
    decorate: traceRequests({ settings, file, clock }),
    close: () => file.close(),
  }
}
