import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { providerFile } from './accelerators.ts'
import { findOrtLibrary } from './find-ort-library.ts'

/** Providers that are loaded for CUDA beyond the runtime's own library, which looks for both beside itself. */
const PROVIDERS = ['shared', 'cuda']

/**
 * Says why ONNX Runtime cannot use CUDA here; undefined if its own CUDA libraries are installed. Whether the libraries that these
 * need can be loaded is known only when a session is made.
 *
 * @param library - as in OnnxEngineOptions.
 */
export function cudaProviderProblem(library?: string): string | undefined {
  const folder = dirname(findOrtLibrary(library))
  const absent = PROVIDERS.map(providerFile).find((file) => !existsSync(join(folder, file)))
  if (absent === undefined) return undefined
  return `ONNX Runtime has no CUDA provider: ${absent} is not beside its library, want an image like step-cuda`
}
