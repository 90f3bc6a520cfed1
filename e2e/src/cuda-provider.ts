import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './serving.ts'

const PROVIDER = join(
  ROOT,
  'node_modules/onnxruntime-node/bin/napi-v6',
  process.platform,
  process.arch,
  'libonnxruntime_providers_cuda.so',
)

/** For tap's `skip`: why ONNX Runtime cannot use CUDA here, or false if what it needs of its own is installed. */
export const withoutProvider: string | false =
  !existsSync(PROVIDER) && `ONNX Runtime has no CUDA provider: no ${PROVIDER}`
