import { type Clock, sleep } from '@tutti/chassis'

/** Resolves when `busy` says 0. @throws the signal's reason. */
export async function untilIdle(
  busy: () => number,
  o: { readonly signal: AbortSignal; readonly clock: Clock; readonly everyMs: number },
): Promise<void> {
  while (busy() > 0) await sleep(o.everyMs, o)
}
