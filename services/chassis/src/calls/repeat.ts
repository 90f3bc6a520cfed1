import type { Clock } from './call-context.ts'

/** Calls `callback` every `everyMs`, first after that time. @returns ends it. */
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
