/** Waits 20 turns of the event loop, in which code that waits only for promises comes to its end. */
export async function settle(): Promise<void> {
  for (let at = 0; at < 20; at++) await new Promise((resolve) => setImmediate(resolve))
}
