import { type Clock, type Logger, limitLog } from '@tutti/chassis'
import type { RequestEnd, RequestObserver, RequestWatch, StepResponse } from '@tutti/tensor'

type Begun = Parameters<RequestObserver['began']>

/** Called with the name of the event and what an observer has thrown at it. */
export type ObserverFailed = (
  event: keyof RequestWatch | keyof RequestObserver,
  error: unknown,
) => void

/** Logs what observers throw: every request may cause it, so that a line comes once a minute at most. */
export function logObserverFailures(
  log: Logger,
  { clock }: { readonly clock: Pick<Clock, 'now'> },
): ObserverFailed {
  const limited = limitLog(log, { clock, lines: 1, everyMs: 60_000 })
  return (event, error) =>
    limited.error('observer of requests failed, and sees no more of the request', { event, error })
}

const SILENT: ObserverFailed = () => {}

/**
 * Observes requests for all of these; undefined if there are none. This is where observers are kept from harming requests: one that
 * throws is told nothing more of its request. Whoever takes in an observer does it here, but for those that are ours and only add
 * numbers up.
 *
 * @param failed - absent: nobody is told what they throw.
 */
export function joinObservers(
  observers: readonly (RequestObserver | undefined)[],
  failed = SILENT,
): RequestObserver | undefined {
  const present = observers.filter((one) => one !== undefined)
  const [first, second] = present
  if (first === undefined) return undefined
  if (second === undefined && first instanceof JoinedObserver) return first
  return new JoinedObserver(present, failed)
}

class JoinedObserver implements RequestObserver {
  readonly #observers: readonly RequestObserver[]
  readonly #failed: ObserverFailed

  constructor(observers: readonly RequestObserver[], failed: ObserverFailed) {
    this.#observers = observers
    this.#failed = failed
  }

  began(...begun: Begun): RequestWatch | undefined {
    return beginWatches(this.#observers, begun, this.#failed)
  }

  passed(...passed: Parameters<NonNullable<RequestObserver['passed']>>): void {
    for (const observer of this.#observers) {
      try {
        observer.passed?.(...passed)
      } catch (error) {
        this.#failed('passed', error)
      }
    }
  }
}

/** Tells these that a request begins. @returns tells them what follows; undefined if none of them wants to know. */
export function beginWatches(
  observers: readonly (RequestObserver | undefined)[],
  begun: Begun,
  failed = SILENT,
): RequestWatch | undefined {
  const watches: RequestWatch[] = []
  for (const observer of observers) {
    try {
      const watch = observer?.began(...begun)
      if (watch !== undefined) watches.push(watch)
    } catch (error) {
      failed('began', error)
    }
  }
  return watches.length === 0 ? undefined : new JoinedWatch(watches, failed)
}

/** The watches of one request, without those that have thrown. */
class JoinedWatch implements RequestWatch {
  readonly steps: RequestObserver | undefined
  readonly #failed: ObserverFailed
  #watches: readonly RequestWatch[]

  constructor(watches: readonly RequestWatch[], failed: ObserverFailed) {
    this.#watches = watches
    this.#failed = failed
    const steps = watches.map((watch) => watch.steps)
    this.steps = joinObservers(steps, failed)
  }

  queued(): void {
    this.#tell('queued', (watch) => watch.queued?.())
  }

  dequeued(): void {
    this.#tell('dequeued', (watch) => watch.dequeued?.())
  }

  responded(response: StepResponse): void {
    this.#tell('responded', (watch) => watch.responded?.(response))
  }

  ended(end: RequestEnd): void {
    this.#tell('ended', (watch) => watch.ended?.(end))
  }

  counted(...counted: Parameters<NonNullable<RequestWatch['counted']>>): void {
    this.#tell('counted', (watch) => watch.counted?.(...counted))
  }

  answered(): void {
    this.#tell('answered', (watch) => watch.answered?.())
  }

  #tell(event: keyof RequestWatch, tell: (watch: RequestWatch) => void): void {
    for (const watch of this.#watches) {
      try {
        tell(watch)
      } catch (error) {
        this.#watches = this.#watches.filter((other) => other !== watch)
        this.#failed(event, error)
      }
    }
  }
}
