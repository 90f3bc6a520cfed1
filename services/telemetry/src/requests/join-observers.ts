import type { RequestEnd, RequestObserver, RequestWatch, StepResponse } from '@tutti/tensor'

/** Observes requests for all of these; an observer alone is that one itself, and none is undefined. */
export function joinObservers(
  observers: readonly (RequestObserver | undefined)[],
): RequestObserver | undefined {
  const present = observers.filter((one) => one !== undefined)
  const [first, second] = present
  if (second === undefined) return first
  return { began: (...begun) => joinWatches(present.map((one) => one.began(...begun))) }
}

/** The same for what watches one request. */
export function joinWatches(
  watches: readonly (RequestWatch | undefined)[],
): RequestWatch | undefined {
  const present = watches.filter((one) => one !== undefined)
  const [first, second] = present
  return second === undefined ? first : new JoinedWatch(present)
}

/** Several watches of one request. */
class JoinedWatch implements RequestWatch {
  readonly steps: RequestObserver | undefined
  readonly #watches: readonly RequestWatch[]

  constructor(watches: readonly RequestWatch[]) {
    this.#watches = watches
    this.steps = joinObservers(watches.map(({ steps }) => steps))
  }

  queued(): void {
    for (const watch of this.#watches) watch.queued?.()
  }

  dequeued(): void {
    for (const watch of this.#watches) watch.dequeued?.()
  }

  responded(response: StepResponse): void {
    for (const watch of this.#watches) watch.responded?.(response)
  }

  ended(end: RequestEnd): void {
    for (const watch of this.#watches) watch.ended?.(end)
  }

  answered(): void {
    for (const watch of this.#watches) watch.answered?.()
  }
}
