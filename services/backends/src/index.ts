export type { CudaDriver } from './devices/cuda-driver.ts'
export {
  createDevices,
  type Devices,
  type DevicesOptions,
  type FoundDevices,
  type GivenAccelerator,
  NO_DEVICES,
} from './devices/devices.ts'
export type {
  Engine,
  EngineCuda,
  EngineOptions,
  ExecuteOptions,
  ExecutionTimes,
  HostCallOptions,
  HostRequest,
  HostResponse,
  LoadedModel,
  ModelHost,
} from './engine.ts'
export { createEngines, type Engines, type EnginesOptions, selectEngine } from './engines.ts'
export {
  type MetricKind,
  type ModelMetricFamily,
  type ModelMetricSeries,
  ModelMetrics,
} from './model-metrics.ts'
export { inspectOnnx, type OnnxModel, type OnnxValue } from './onnx/inspect.ts'
export { createOnnxEngine, type OnnxEngineOptions } from './onnxruntime/onnx-engine.ts'
export { createPythonEngine, type PythonEngineOptions } from './python/python-engine.ts'
export type { PythonSettings } from './python/python-settings.ts'
