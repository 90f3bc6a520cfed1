import type { RequestObserver, RequestWatch } from '@tutti/tensor'
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
export type ObservedEvent = (typeof OBSERVED_EVENTS)[number]

/** An observer that breaks its contract. @param notes - gets what it was told. */
export function throwingObserver(event: ObservedEvent, notes: string[] = []): RequestObserver {
  const told = (one: ObservedEvent) => (): void => {
    notes.push(`thrower ${one}`)
    if (one === event) throw new Error(`thrown at ${one}`)
  }
  const watch: RequestWatch = {
    queued: told('queued'),
    dequeued: told('dequeued'),
    responded: told('responded'),
    ended: told('ended'),
    answered: told('answered'),
  }
  return {
    began: () => {
      told('began')()
      return { ...watch, steps: { began: () => watch } }
    },
  }
}

/** Metrics with such an observer of the requests to each model version. */
export class ThrowingMetrics extends ServerMetrics {
  readonly #thrower: RequestObserver

  constructor(event: ObservedEvent) {
    super()
    this.#thrower = throwingObserver(event)
  }

  override observerOf(recorder: StatisticsRecorder): RequestObserver {
    return joinObservers([super.observerOf(recorder), this.#thrower]) ?? recorder
  }
}
