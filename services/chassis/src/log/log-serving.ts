import type { Clock } from '../calls/call-context.ts'
import type { LogFields, Logger } from './log.ts'
import { SERVING_EVENTS as EVENTS } from './log-events.ts'

/** Options of the log of a server that listens. */
export interface ServingOptions {
  readonly log: Logger
  readonly clock: Pick<Clock, 'setTimer'>
  /** Fields of the line: the ports, and others that name the process. */
  readonly fields: LogFields
  /** Finds what holds the process back from being ready right now; none if it is ready. */
  readonly causes: () => readonly string[]
}

/** Nothing waits for the line but people and scripts. */
const LOOK_EVERY_MS = 100

/**
 * Logs that the server is ready, at once or as soon as `causes` returns none. If the server is not ready at once, a warning with
 * the causes comes first.
 *
 * @returns a function that ends the wait.
 */
export function logServing({ log, clock, fields, causes }: ServingOptions): () => void {
  let stop: (() => void) | undefined
  const look = (): boolean => {
    const isReady = causes().length === 0
    if (isReady) log.info(EVENTS.ready, fields)
    else stop = clock.setTimer(LOOK_EVERY_MS, look)
    return isReady
  }
  if (!look()) log.warn(EVENTS.notReady, { ...fields, causes: [...causes()] })
  return () => stop?.()
}
