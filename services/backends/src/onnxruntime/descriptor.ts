import type { EngineDescriptor } from '../descriptor.ts'

const MOST_ITEMS = 2 ** 31 - 1

/** ONNX models, by ONNX Runtime. */
export const onnxruntime = {
  backend: 'onnxruntime',
  files: [{ platform: 'onnxruntime_onnx', filename: 'model.onnx' }],
  cpuInstances: 2,
  format: 'onnx',
  title: 'ONNX',
  settings: {
    'default-max-batch-size': { field: 'defaultMaxBatchSize', least: 0, most: MOST_ITEMS },
    'max-strings': { field: 'maxStrings', least: 1, most: MOST_ITEMS },
  },
  takesLibrary: true,
  image: 'step',
  memory: '256Mi',
  errorPrefix: 'onnx runtime error ',
} as const satisfies EngineDescriptor
