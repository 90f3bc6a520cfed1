import type { MemoryPart, TensorMemory } from '../tensor-memory.ts'

/** Memory for tensors that is overwritten as soon as it is given back, so that a reader shows that should have retained it. */
export class PoisonedMemory implements TensorMemory {
  /** Taken and not given back. */
  open = 0
  /** Bytes that were ever taken. */
  taken = 0
  readonly #take: TensorMemory['take']

  /** @param take - where the bytes come from; ordinary memory unless given. */
  constructor(take: TensorMemory['take'] = (bytes) => ordinary(bytes)) {
    this.#take = take
  }

  take(sizeBytes: number): MemoryPart | undefined {
    const part = this.#take(sizeBytes)
    if (part === undefined) return undefined
    const { bytes } = part
    bytes.fill(0xdd)
    this.open += 1
    this.taken += sizeBytes
    let isOver = false
    const free = (): void => {
      if (isOver) throw new Error('given back twice')
      isOver = true
      this.open -= 1
      bytes.fill(0xee)
      part.free()
    }
    return { bytes, free }
  }
}

function ordinary(sizeBytes: number): MemoryPart {
  return { bytes: new Uint8Array(sizeBytes), free: () => {} }
}
