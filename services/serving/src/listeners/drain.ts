import type { Clock } from '@tutti/chassis'

/** Time for writing the answers of requests that a drain failed. */
const LAST_ANSWERS_MS = 1000

/** The requests of one server that are in flight. */
export interface InFlight {
  /** Calls back when none is left, at once if there is none. */
  whenIdle(callback: () => void): void
  /** Answers the requests that are left with SERVER_STOPPING. */
  failAll(): void
}

/** Waits until the requests in flight are answered. @returns false if some had to be failed when the time was over. */
export async function drainWithin(
  timeoutMs: number,
  requests: InFlight,
  clock: Clock,
): Promise<boolean> {
  if (await idleWithin(timeoutMs, requests, clock)) return true
  requests.failAll()
  await idleWithin(LAST_ANSWERS_MS, requests, clock)
  return false
}

function idleWithin(timeoutMs: number, requests: InFlight, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const stopTimer = clock.setTimer(timeoutMs, () => resolve(false))
    requests.whenIdle(() => {
      stopTimer()
      resolve(true)
    })
  })
}
