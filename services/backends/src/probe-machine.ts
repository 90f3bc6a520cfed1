import { openSharedMemory } from './python/shared-memory.ts'

const ONE_PAGE = 4096

/** Tries to make memory that processes of models can map. @returns why that fails; undefined if it does not. */
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
