export { type FaultProxy, type FaultProxyOptions, startFaultProxy } from './fault-proxy.ts'
export { createManualClock, type ManualClock } from './manual-clock.ts'
export { createSignalSource, type ManualSignals } from './manual-signals.ts'
export {
  type ProcessExit,
  type ProcessOptions,
  type StartedProcess,
  startProcess,
} from './start-process.ts'
