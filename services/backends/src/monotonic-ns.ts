/** Monotonic nanoseconds, the same clock on every thread of the process. */
export function monotonicNs(): number {
  const [seconds, ns] = process.hrtime()
  return seconds * 1e9 + ns
}
