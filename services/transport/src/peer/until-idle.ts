import { type Clock, sleep } from '@tutti/chassis'

/** Resolves when `busy` says 0. @throws the signal's reason. */
export async function untilIdle(
  busy: () => number,
  o: { readonly signal: AbortSignal; readonly clock: Clock },
): Promise<void> {
  while (busy() > 0) await sleep(EVERY_MS, o)
}

/** A drain ends when the last call is done; how late that is noticed. */
const EVERY_MS = 10
