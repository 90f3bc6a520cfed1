import { openSharedMemory } from './python/shared-memory.ts'

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
