import { leave } from '../process/leave.ts'
import { processSignals, type SignalSource } from '../process/lifecycle.ts'
import { type ErrorStream, StatusLine } from '../terminal/status-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { ErrorOutput } from './report-failure.ts'

/**
 * Streams, variables, signals and exit of the process that an executable runs in. Programs pass `processEnvironment(process)`.
 */
export interface ProcessEnvironment extends ErrorOutput {
  readonly env: Readonly<Record<string, string | undefined>>
  out(text: string): void
  /** Standard input; absent for none. */
  readonly input?: AsyncIterable<Uint8Array | string>
  /** Terminal of the process; present where input and output are the same terminal. */
  readonly terminal?: Terminal
  /** Status line of standard error, if that is a terminal. */
  readonly statusLine?: StatusLine
  readonly signals: SignalSource
  /** Ends the process. @param isBusy - true if threads are still running. */
  exit(code: number, isBusy: boolean): void
}

/** Wraps the real process, for main.ts. Its exit does not wait for open work, such as a run that an engine cannot interrupt. */
export function processEnvironment(
  source: Parameters<typeof processSignals>[0] &
    Pick<ProcessEnvironment, 'env'> &
    Record<'stdout', { write(text: string): unknown }> &
    Record<'stderr', ErrorStream>,
): ProcessEnvironment {
  const statusLine = StatusLine.of(source.stderr, source.env)
  const write = (stream: { write(text: string): unknown }, text: string): void => {
    statusLine?.clear()
    stream.write(text)
  }
  return {
    env: source.env,
    out: (text) => write(source.stdout, text),
    err: (text) => write(source.stderr, text),
    ...(statusLine && { statusLine }),
    signals: processSignals(source),
    exit: leave,
  }
}
