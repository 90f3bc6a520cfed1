import type { StopSignal } from '../process/lifecycle.ts'

export type ManualSignals = ReturnType<typeof createSignalSource>

/** Makes a signal source without a process, which a test drives. */
export function createSignalSource() {
  const listeners = new Set<(signal: StopSignal) => void>()
  return {
    listen: (onSignal: (signal: StopSignal) => void): (() => void) => {
      listeners.add(onSignal)
      return () => void listeners.delete(onSignal)
    },
    send: (signal: StopSignal): void => {
      for (const listener of listeners) listener(signal)
    },
    /** Number of listeners that were not taken back. */
    get listeners() {
      return listeners.size
    },
  }
}
