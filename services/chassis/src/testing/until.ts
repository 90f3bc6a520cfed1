import { setTimeout as delay } from 'node:timers/promises'

/**
 * Between two looks: another process cannot be subscribed to, so what it shows is looked at again. Longer behind a look that took long,
 * as one by kubectl: it would take the processor from what it waits for.
 */
const PAUSE_MS = { least: 10, most: 200 }
/** Far beyond what anything here takes; a test that gets so far hangs. */
const LIMIT_MS = 120_000

/**
 * Looks again and again until `look` finds something, and gives it back.
 *
 * @param what - for the error, e.g. 'all requests wait in the queue'; a function if it should say how things stand then.
 * @throws Error after a long time.
 */
export async function until<T>(
  what: string | (() => string),
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const giveUpAt = performance.now() + LIMIT_MS
  for (;;) {
    const beganAt = performance.now()
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > giveUpAt) {
      throw new Error(`waited in vain until ${typeof what === 'string' ? what : what()}`)
    }
    const tookMs = performance.now() - beganAt
    await delay(Math.min(Math.max(PAUSE_MS.least, 2 * tookMs), PAUSE_MS.most))
  }
}
