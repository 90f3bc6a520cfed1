import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ortFolder } from './ort-library.ts'

/** Libraries that are loaded for CUDA beyond the package's own library, which looks for both beside itself. */
const LIBRARIES = ['libonnxruntime_providers_shared.so', 'libonnxruntime_providers_cuda.so']

/**
 * Says why ONNX Runtime cannot use CUDA here; undefined if its own CUDA libraries are installed. Whether the libraries that these
 * need can be loaded is known only when a session is made.
 */
export function cudaProviderProblem(): string | undefined {
  const folder = ortFolder()
  const absent = LIBRARIES.find((library) => !existsSync(join(folder, library)))
  if (absent === undefined) return undefined
  return `ONNX Runtime has no CUDA provider: ${absent} is not beside its library, want an image like step-cuda`
}
