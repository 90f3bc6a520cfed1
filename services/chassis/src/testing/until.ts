import { setTimeout as delay } from 'node:timers/promises'

/** Between two looks: another process cannot be subscribed to, so what it shows is looked at again. */
const PAUSE_MS = 10
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
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > giveUpAt) {
      throw new Error(`waited in vain until ${typeof what === 'string' ? what : what()}`)
    }
    await delay(PAUSE_MS)
  }
}
