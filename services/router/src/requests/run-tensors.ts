import { type ByteCount, bug } from '@tutti/errors'
import {
  constantData,
  constantOf,
  type EnsemblePlan,
  type NamedEntry,
  type TensorEntry,
} from '@tutti/graph'
import { formatShape, type Lent, type NamedTensor, type Shape } from '@tutti/tensor'
import { HeldBytes, type Holding } from '../calls/held-bytes.ts'
import { lendOn } from '../calls/lend-tensors.ts'
import type { RequestDependencies } from '../calls/request-dependencies.ts'

/** A tensor that the run knows by its number. What was lent is given back when the run releases it. */
interface CountedTensor {
  readonly data: Uint8Array
  /** Undefined for ordinary memory. */
  readonly retain: Lent['retain']
  readonly giveBack: (() => void) | undefined
  /** How the run counts it. */
  readonly holding: Holding
}

/** The bytes of one ensemble run's tensors, by the references that the run has for them. */
export class RunTensors {
  readonly #plan: EnsemblePlan
  /** The tensors that all runs hold. */
  readonly #memory: RequestDependencies['memory']
  readonly #tensors = new Map<number, CountedTensor>()
  #last = 0
  /** Absent where nothing bounds the memory of requests. */
  readonly #held: HeldBytes | undefined
  /** True if some of the tensors are lent. */
  #hasLent = false
  /** Constants that were repeated for the rows of a batch. */
  #repeated: Map<string, Uint8Array> | undefined

  /** @param count - of the request's bytes; absent where nothing bounds them. */
  constructor(
    plan: EnsemblePlan,
    { memory }: Pick<RequestDependencies, 'memory'>,
    count: ByteCount | undefined,
  ) {
    this.#plan = plan
    this.#memory = memory
    this.#held = count && new HeldBytes(count)
  }

  /** Takes tensors. @param isOwn - they are the request's. @throws ServeError OVERLOADED without holding any. */
  hold(
    tensors: readonly NamedTensor[],
    retain: Lent['retain'],
    isOwn = false,
  ): Map<string, TensorEntry> {
    const held = new Map<string, TensorEntry>()
    if (retain !== undefined) this.#hasLent = true
    try {
      for (const { name, datatype, shape, data } of tensors) {
        const holding = (isOwn ? this.#held?.holdOwn(data) : this.#held?.hold(data)) ?? 0
        const ref = ++this.#last
        this.#tensors.set(ref, { data, retain, giveBack: retain?.(), holding })
        held.set(name, { ref, datatype, shape })
        this.#memory.count += 1
        this.#memory.bytesInUse += data.byteLength
      }
    } catch (error) {
      for (const { ref } of held.values()) this.release(ref)
      throw error
    }
    return held
  }

  /** Gives a tensor back. */
  release(ref: number): void {
    const { data, giveBack, holding } = this.#find(ref)
    this.#tensors.delete(ref)
    this.#memory.count -= 1
    this.#memory.bytesInUse -= data.byteLength
    this.#held?.release(holding)
    giveBack?.()
  }

  /** Reads the inputs of a step. @throws ServeError OVERLOADED if a constant that is repeated for a batch finds no memory. */
  read(entries: readonly NamedEntry[]): readonly NamedTensor[] {
    return this.#toTensors(entries, (data) => this.#held?.hold(data))
  }

  /** Reads the outputs of a response: who gets it counts what it keeps. */
  give(entries: readonly NamedEntry[]): readonly NamedTensor[] {
    return this.#toTensors(entries, () => {})
  }

  /** Makes the loan by which a reader retains these tensors. */
  lend(entries: readonly NamedEntry[]): Lent {
    if (!this.#hasLent) return {}
    const made = entries.filter(({ ref }) => constantOf(ref) === undefined)
    return lendOn(made.map(({ ref }) => this.#find(ref)))
  }

  /** Counts no bytes from now on. */
  endCount(): void {
    this.#held?.end()
  }

  #find(ref: number): CountedTensor {
    const held = this.#tensors.get(ref)
    if (held === undefined) throw bug(`tensor ${ref} of ensemble ${this.#plan.name} is not held`)
    return held
  }

  /** @param charge - called with what was repeated for the rows of a batch. */
  #toTensors(
    entries: readonly NamedEntry[],
    charge: (data: Uint8Array) => void,
  ): readonly NamedTensor[] {
    return entries.map(({ name, datatype, shape, ref }) => {
      const constant = constantOf(ref)
      const data =
        constant === undefined ? this.#find(ref).data : this.#constant(constant, shape, charge)
      return { name, datatype, shape, data }
    })
  }

  #constant(index: number, shape: Shape, charge: (data: Uint8Array) => void): Uint8Array {
    const value = this.#plan.constants[index]
    if (value === undefined) throw bug(`ensemble ${this.#plan.name} has no constant ${index}`)
    const key = `${index} ${formatShape(shape)}`
    const known = this.#repeated?.get(key)
    if (known !== undefined) return known
    const data = constantData(value, shape)
    if (data === value.data) return data
    charge(data)
    this.#repeated ??= new Map()
    this.#repeated.set(key, data)
    return data
  }
}
