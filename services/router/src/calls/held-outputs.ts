import type { Lent, NamedTensor, StepResponse } from '@tutti/tensor'
import { HeldBytes } from './held-bytes.ts'
import { lendOn } from './lend-tensors.ts'
import type { ModelCall } from './model-call.ts'
import type { RequestDependencies } from './request-dependencies.ts'

/** Holds responses of a step's calls until the step answers, and counts their bytes and what is made of them. */
export class HeldOutputs {
  readonly #memory: RequestDependencies['memory']
  readonly #call: ModelCall
  readonly #bytes: HeldBytes | undefined
  #charged = 0
  #tensors: NamedTensor[] = []
  #retains: Pick<Lent, 'retain'>[] = []
  #giveBacks: (() => void)[] = []

  constructor({ memory }: Pick<RequestDependencies, 'memory'>, call: ModelCall) {
    this.#memory = memory
    this.#call = call
    const { memory: count } = call.context
    this.#bytes = count && new HeldBytes(count)
    // A model may answer with views of its inputs, which are counted already.
    for (const { data } of call.request.inputs) this.#bytes?.holdOwn(data)
  }

  /** Counts bytes that are made. @throws ServeError OVERLOADED without counting them. */
  charge(bytes: number): void {
    this.#call.context.memory?.charge(bytes)
    this.#charged += bytes
  }

  /** Holds a response. @throws ServeError OVERLOADED if there is no memory for it. */
  hold({ outputs, retain }: Pick<StepResponse, 'outputs' | 'retain'>): void {
    for (const tensor of outputs) {
      this.#bytes?.hold(tensor.data)
      this.#tensors.push(tensor)
      this.#memory.count += 1
      this.#memory.bytesInUse += tensor.data.byteLength
    }
    if (retain === undefined) return
    this.#retains.push({ retain })
    this.#giveBacks.push(retain())
  }

  /** Lends on what is held. */
  lend(): Lent {
    return this.#retains.length === 0 ? {} : lendOn(this.#retains)
  }

  /** Counts no bytes from now on. */
  endCount(): void {
    this.#bytes?.end()
    this.#call.context.memory?.charge(-this.#charged)
    this.#charged = 0
  }

  /** Gives everything back. */
  end(): void {
    this.endCount()
    this.giveBack()
  }

  /** Gives back what was lent. */
  giveBack(): void {
    this.#memory.count -= this.#tensors.length
    for (const { data } of this.#tensors) this.#memory.bytesInUse -= data.byteLength
    for (const giveBack of this.#giveBacks) giveBack()
    this.#tensors = []
    this.#giveBacks = []
  }
}
