import type { Clock } from './call-context.ts'

/** Calls `callback` every `everyMs` milliseconds, the first time after `everyMs`. @returns a function that stops the calls. */
export function repeat(
  clock: Pick<Clock, 'setTimer'>,
  everyMs: number,
  callback: () => void,
): () => void {
  const wait = (): (() => void) =>
    clock.setTimer(everyMs, () => {
      // Before the callback, which may end it.
      stop = wait()
      callback()
    })
  let stop = wait()
  return () => stop()
}
