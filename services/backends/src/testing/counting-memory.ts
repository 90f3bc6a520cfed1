import { openSharedMemory, type SharedMemoryLike } from '../python/shared-memory.ts'

/** Shared memory that counts what is copied from and to it, in bytes. */
export function countingMemory() {
  const shared = openSharedMemory()
  if (typeof shared === 'string') throw new Error(shared)
  const copied = { in: 0, out: 0 }
  const memory: SharedMemoryLike = {
    create: (size) => {
      const mapping = shared.create(size)
      return {
        ...mapping,
        copyIn: (offset, data) => {
          copied.in += data.byteLength
          mapping.copyIn(offset, data)
        },
        copyInLater: (offset, data) => {
          copied.in += data.byteLength
          return mapping.copyInLater(offset, data)
        },
        copyOut: (offset, target) => {
          copied.out += target.byteLength
          mapping.copyOut(offset, target)
        },
        copyOutLater: (offset, target) => {
          copied.out += target.byteLength
          return mapping.copyOutLater(offset, target)
        },
      }
    },
  }
  const reset = (): void => void Object.assign(copied, { in: 0, out: 0 })
  return { memory, copied, reset }
}
