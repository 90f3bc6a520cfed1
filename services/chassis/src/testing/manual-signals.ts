import type { SignalSource, StopSignal } from '../lifecycle.ts'

/** A signal source that a test drives. */
export interface ManualSignals extends SignalSource {
  send(signal: StopSignal): void
  /** Number of listeners that were not taken back. */
  readonly listeners: number
}

/** Makes a signal source without a process. */
export function createSignalSource(): ManualSignals {
  const listeners = new Set<(signal: StopSignal) => void>()
  return {
    listen: (onSignal) => {
      listeners.add(onSignal)
      return () => void listeners.delete(onSignal)
    },
    send: (signal) => {
      for (const listener of listeners) listener(signal)
    },
    get listeners() {
      return listeners.size
    },
  }
}
