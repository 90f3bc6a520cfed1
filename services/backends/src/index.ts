export { CudaImports } from './devices/cuda-memory.ts'
export { isDeviceFault } from './devices/device-faults.ts'
export { createDevices, type Devices, type FoundDevices, NO_DEVICES } from './devices/devices.ts'
export { GpuMetrics } from './devices/gpu-metrics.ts'
export type {
  BatchOptions,
  Engine,
  EngineOptions,
  EngineRequest,
  ExecutionTimes,
  HostCallOptions,
  HostRequest,
  LoadedModel,
  ModelHost,
} from './engine.ts'
export type { EngineCheck, EngineCheckOptions, EngineSettings } from './engine-code.ts'
export {
  checkEngine,
  createEngines,
  type Engines,
  type EnginesOptions,
  selectEngine,
} from './engines.ts'
export type { HostPolicies } from './host-policies.ts'
export { loadTimeout } from './load-timeout.ts'
export { CustomMetrics } from './model-metrics.ts'
export { probeSharedMemory } from './probe-machine.ts'
export { type FindPythonOptions, findPython } from './python/find-python.ts'
export { LentMemory } from './python/lent-memory.ts'
export { probePython } from './python/probe-python.ts'
export { pythonsOnPath } from './python/pythons-on-path.ts'
