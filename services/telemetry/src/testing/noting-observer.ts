import type { RequestEnd, RequestObserver, RequestWatch } from '@tutti/tensor'
import { ServerMetrics } from '../metrics/metrics.ts'
import { joinObservers } from '../requests/join-observers.ts'
import type { StatisticsRecorder } from '../statistics/statistics.ts'

/** All that an observer is told. */
export const OBSERVED_EVENTS = [
  'began',
  'queued',
  'dequeued',
  'responded',
  'ended',
  'answered',
] as const
type ObservedEvent = (typeof OBSERVED_EVENTS)[number]

/**
 * An observer that notes what it is told: `ended` with the reason of the error and whether the request was executed.
 *
 * @param throwsAt - the event at which it breaks its contract.
 */
export function notingObserver(notes: string[], throwsAt?: ObservedEvent): RequestObserver {
  const told = (event: ObservedEvent, more = ''): void => {
    notes.push(event + more)
    if (event === throwsAt) throw new Error(`thrown at ${event}`)
  }
  const began = (): RequestWatch => {
    told('began')
    return {
      steps: { began },
      queued: () => told('queued'),
      dequeued: () => told('dequeued'),
      responded: () => told('responded'),
      ended: ({ error, executed }: RequestEnd) =>
        told('ended', error && ` ${error.reason} ${executed}`),
      answered: () => told('answered'),
    }
  }
  return { began }
}

/** An observer that breaks its contract. */
export function throwingObserver(event: ObservedEvent, notes: string[] = []): RequestObserver {
  return notingObserver(notes, event)
}

/** Metrics with one more observer of the requests to each model version. */
export class ObservedMetrics extends ServerMetrics {
  readonly #observer: RequestObserver

  constructor(observer: RequestObserver) {
    super()
    this.#observer = observer
  }

  override observerOf(recorder: StatisticsRecorder): RequestObserver {
    return joinObservers([super.observerOf(recorder), this.#observer]) ?? recorder
  }
}
