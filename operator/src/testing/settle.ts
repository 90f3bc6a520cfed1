/** Lets everything that waits for nothing but other promises come to its end. */
export async function settle(): Promise<void> {
  for (let at = 0; at < 20; at++) await new Promise((resolve) => setImmediate(resolve))
}
