export { CudaImports } from './devices/cuda-memory.ts'
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
export {
  createEngines,
  type Engines,
  type EnginesOptions,
  type ProcessOptions,
  selectEngine,
} from './engines.ts'
export type { HostPolicies } from './host-policies.ts'
export { loadTimeout } from './load-timeout.ts'
export { ModelMetrics } from './model-metrics.ts'
export { probeOnnxRuntime, probeSharedMemory } from './probe-machine.ts'
export {
  type FindPythonOptions,
  findPython,
  isBasePython,
  PYTHON_MENDING,
} from './python/find-python.ts'
export { LentMemory } from './python/lent-memory.ts'
export { type ProbedPython, type PythonModule, probePython } from './python/probe-python.ts'
export { createPythonEngine, type PythonEngineOptions } from './python/python-engine.ts'
export type { PythonSettings } from './python/python-settings.ts'
export { pythonsOnPath } from './python/pythons-on-path.ts'
