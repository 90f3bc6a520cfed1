import { loadOrtLibrary, ortFolder } from './onnxruntime/ort-library.ts'
import { openSharedMemory } from './python/shared-memory.ts'

/** Loads ONNX Runtime. @returns the folder of its library. @throws ServeError MODEL_LOAD_FAILED with what is missing. */
export function probeOnnxRuntime(): string {
  loadOrtLibrary()
  return ortFolder()
}

const ONE_PAGE = 4096

/** Makes memory that processes of models can map, and gives it back. @returns why that cannot be; undefined if it can. */
export function probeSharedMemory(): string | undefined {
  const memory = openSharedMemory()
  if (typeof memory === 'string') return memory
  try {
    memory.create(ONE_PAGE).unmap()
    return undefined
  } catch (error) {
    return String(error)
  }
}
