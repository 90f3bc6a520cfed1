import { performance } from 'node:perf_hooks'
import type { HistoryEvent } from '../processes/history-check.ts'

/** The kind of fault that `watchRelays` records. */
export const RELAYS_HELD = 'relays held'

const TICK_MS = 100
/** A question to the broker passes its relay twice, and a member gives up a broker that is silent for 3 s. */
const HELD_MS = 1000

/**
 * The relays between members and broker run in this process, which a busy machine lets wait for seconds. Then members lose the broker,
 * as if it were held; so it is a fault, from when this process goes on until all is settled.
 */
export function watchRelays(o: {
  readonly record: (event: HistoryEvent) => void
  readonly nextFault: () => number
  readonly settled: () => Promise<void>
}) {
  const settling: Promise<void>[] = []
  let dueAt = performance.now() + TICK_MS
  // Timers fire before sockets are read, so the fault is there before the errors that it explains.
  const timer = setInterval(() => {
    const now = performance.now()
    const lateMs = now - dueAt
    dueAt = now + TICK_MS
    if (lateMs < HELD_MS) return
    const fault = o.nextFault()
    o.record({ type: 'struck', fault, kind: RELAYS_HELD })
    const settled = o.settled().then(() => o.record({ type: 'settled', fault }))
    // It rejects again where it is waited for.
    settled.catch(() => {})
    settling.push(settled)
  }, TICK_MS)
  return {
    /** Waits until what it recorded is settled. */
    stop: async (): Promise<void> => {
      clearInterval(timer)
      await Promise.all(settling)
    },
  }
}
