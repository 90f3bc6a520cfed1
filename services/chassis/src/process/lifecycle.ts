import { ServeError } from '@tutti/errors'
import type { Clock } from '../calls/call-context.ts'
import { systemClock } from '../calls/call-scope.ts'
import { raceSignal, signalError } from '../calls/signal-error.ts'
import type { Logger } from '../log/log.ts'
import { LIFECYCLE_EVENTS as EVENTS } from '../log/log-events.ts'
import { type Health, STARTING } from './health.ts'

export type StopSignal = 'SIGTERM' | 'SIGINT'

/** Functions that end what `start` has opened. They are called in this order, each at most once. */
export interface Running {
  /** Refuses new work from now on; requests in flight go on. */
  stopAccepting(): Promise<void> | void
  /** Resolves when nothing is in flight. @param o.signal - aborts when the grace period is over. */
  drain(o: { readonly signal: AbortSignal }): Promise<void>
  /** Frees everything; what is still in flight fails now. */
  close(): Promise<void>
  /** Tells, after `close`, whether threads are still in work that cannot be interrupted. Absent: never. */
  isBusy?(): boolean
}

/** Source of stop signals: `processSignals(process)`, or a list that a test drives. */
export interface SignalSource {
  /** Calls `onSignal` for each stop signal. @returns a function that removes the listener. */
  listen(onSignal: (signal: StopSignal) => void): () => void
}

/**
 * Stops a process that must be replaced by another one. Has no effect once it stops.
 *
 * @param problem - why; it is logged, and held against the readiness.
 */
export type GiveUp = (problem: string) => void

/** Exit code of a process that gave up. */
export const GIVEN_UP_CODE = 70

export interface LifecycleOptions {
  /**
   * Opens everything.
   *
   * @param o.signal - aborts when a stop signal comes before the start is done.
   * @param o.giveUp - stops the process as a signal does, because it can do its work no longer.
   */
  readonly start: (o: { readonly signal: AbortSignal; readonly giveUp: GiveUp }) => Promise<Running>
  readonly health: Health
  readonly logger: Logger
  readonly signals: SignalSource
  /** Ends the process: see `leave`. Called once. @param isBusy - threads are still running. */
  readonly exit: (code: number, isBusy: boolean) => void
  /** Time from the first signal to the end of the drain, in milliseconds. */
  readonly graceMs: number
  /** Time for `close` after the drain, in milliseconds; default 10,000. The process exits even if `close` hangs. */
  readonly closeMs?: number
  readonly clock?: Clock
}

/**
 * Runs an executable: start, ready, and on SIGTERM or SIGINT not ready, stop accepting, drain within the grace period,
 * close, exit. A second signal exits at once with 128 + its number, but not one that follows the first within 250 ms.
 *
 * Exit code 0 if all of it went well, 1 if start, drain or close failed or took longer than allowed, GIVEN_UP_CODE after `giveUp`.
 *
 * @returns resolves with the code after `exit` was called with it.
 */
export async function runUntilSignal(o: LifecycleOptions): Promise<number> {
  const stop = new AbortController()
  const exited = Promise.withResolvers<number>()
  let isExiting = false
  const exit = ({ code, isBusy }: Ending): void => {
    if (isExiting) return
    isExiting = true
    unlisten()
    o.logger.info(EVENTS.exited, { code })
    o.exit(code, isBusy)
    exited.resolve(code)
  }
  const clock = o.clock ?? systemClock
  let hasGivenUp = false
  const giveUp = (problem: string): void => {
    if (stop.signal.aborted) return
    hasGivenUp = true
    stoppedAt = clock.now()
    o.health.hold('stopping', problem)
    o.logger.error(EVENTS.givenUp, { error: problem, code: GIVEN_UP_CODE })
    stop.abort(new ServeError('SERVER_STOPPING', problem))
  }
  let stoppedAt = 0
  const unlisten = o.signals.listen((signal) => {
    if (!stop.signal.aborted) {
      stoppedAt = clock.now()
      o.health.hold('stopping', 'the server is stopping')
      o.logger.info(EVENTS.stopping, { signal, graceMs: o.graceMs })
      stop.abort(new ServeError('SERVER_STOPPING', `the server got ${signal}`))
      return
    }
    if (clock.now() - stoppedAt < SAME_STOP_MS) return
    o.logger.warn(EVENTS.secondSignal, { signal })
    exit({ code: 128 + SIGNAL_NUMBERS[signal], isBusy: true })
  })
  // Threads may be in a library that would end the process in another way.
  const end = ({ code, isBusy }: Ending): void =>
    exit(hasGivenUp ? { code: GIVEN_UP_CODE, isBusy: true } : { code, isBusy })
  runStages(o, { stop: stop.signal, giveUp }).then(end, (error: unknown) => {
    o.logger.error(EVENTS.failed, { error: ServeError.from(error) })
    exit({ code: 1, isBusy: true })
  })
  return exited.promise
}

/** One stop comes twice where npm hands on what a terminal or systemd sent to all; two of them so soon are never meant. */
const SAME_STOP_MS = 250

const SIGNAL_NUMBERS: Readonly<Record<StopSignal, number>> = { SIGINT: 2, SIGTERM: 15 }

/** Listens for SIGTERM and SIGINT on a process. */
export function processSignals(source: {
  on(event: StopSignal, listener: () => void): unknown
  off(event: StopSignal, listener: () => void): unknown
}): SignalSource {
  return {
    listen: (onSignal) => {
      const onTerm = (): void => onSignal('SIGTERM')
      const onInt = (): void => onSignal('SIGINT')
      source.on('SIGTERM', onTerm)
      source.on('SIGINT', onInt)
      return () => {
        source.off('SIGTERM', onTerm)
        source.off('SIGINT', onInt)
      }
    },
  }
}

/** How the process ends. */
interface Ending {
  readonly code: number
  readonly isBusy: boolean
}

async function runStages(
  o: LifecycleOptions,
  { stop, giveUp }: { readonly stop: AbortSignal; readonly giveUp: GiveUp },
): Promise<Ending> {
  const { health, logger } = o
  const clock = o.clock ?? systemClock
  logger.info(EVENTS.starting)
  const grace = new AbortController()
  const started = o.start({ signal: stop, giveUp })
  const stopped = new Promise<void>((resolve) => {
    stop.addEventListener('abort', () => resolve(), { once: true })
    if (stop.aborted) resolve()
  })
  const graceTimer = stopped.then(() =>
    clock.setTimer(o.graceMs, () =>
      grace.abort(new ServeError('SERVER_STOPPING', `grace period of ${o.graceMs} ms is over`)),
    ),
  )
  let running: Running
  try {
    running = await raceSignal(started, grace.signal)
  } catch (error) {
    if (stop.aborted) logger.info(EVENTS.startGivenUp)
    else logger.error(EVENTS.startFailed, { error: ServeError.from(error) })
    return { code: stop.aborted ? 0 : 1, isBusy: true }
  }
  health.release(STARTING)
  // Ready it may not be yet: what else holds it back is not the lifecycle's to know.
  if (!stop.aborted) logger.info(EVENTS.started)
  await stopped
  const isDrained = await drain(running, grace.signal, logger)
  ;(await graceTimer)()
  health.die('the server is closing')
  const isClosed = await close(running, o.closeMs ?? 10_000, clock, logger)
  const isBusy = !isClosed || running.isBusy?.() === true
  return { code: isDrained && isClosed ? 0 : 1, isBusy }
}

async function drain(running: Running, grace: AbortSignal, logger: Logger): Promise<boolean> {
  try {
    await raceSignal(Promise.resolve(running.stopAccepting()), grace)
    logger.info(EVENTS.draining)
    await raceSignal(running.drain({ signal: grace }), grace)
    logger.info(EVENTS.drained)
    return true
  } catch (error) {
    const cause = grace.aborted ? signalError(grace) : ServeError.from(error)
    logger.warn(EVENTS.drainFailed, { error: cause })
    return false
  }
}

async function close(
  running: Running,
  closeMs: number,
  clock: Clock,
  logger: Logger,
): Promise<boolean> {
  const limit = new AbortController()
  const stopTimer = clock.setTimer(closeMs, () =>
    limit.abort(new ServeError('SERVER_STOPPING', `close took longer than ${closeMs} ms`)),
  )
  try {
    await raceSignal(running.close(), limit.signal)
    logger.info(EVENTS.closed)
    return true
  } catch (error) {
    logger.error(EVENTS.closeFailed, { error: ServeError.from(error) })
    return false
  } finally {
    stopTimer()
  }
}
