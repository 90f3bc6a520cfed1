import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { fromConfigDatatype, type NamedTensor } from '@tutti/tensor'

/** Bytes that all sequences of a model version may keep together: states grow with every model that says so. */
const MAX_STATE_BYTES = 2 ** 30

/** A state that the scheduler keeps for the sequences of a model (`sequence_batching.state`). */
export interface StateRule {
  readonly output: string
  /** The value that a new sequence has: a tensor with the name of the input. */
  readonly initial: NamedTensor
  /** The client may ask for it: it is an output of the model too. */
  readonly isOutput: boolean
}

/** Puts together what a config and its files say of states. @param initial - by name of the input. */
export function compileStates(
  config: ModelConfig,
  initial: ReadonlyMap<string, NamedTensor>,
): readonly StateRule[] {
  const states = config.sequence_batching?.state ?? []
  return states.flatMap(({ input_name: input, output_name: output, data_type: type }) => {
    const tensor = initial.get(input)
    if (tensor === undefined || fromConfigDatatype(type) === undefined) return []
    const isOutput = config.output.some(({ name }) => name === output)
    return [{ output, initial: tensor, isOutput }]
  })
}

/** The bytes that the sequences of one model version keep. */
export class StateMemory {
  readonly #model: string
  readonly #most: number
  #bytes = 0

  constructor(model: string, most: number = MAX_STATE_BYTES) {
    this.#model = model
    this.#most = most
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @throws ServeError OVERLOADED over the bound. */
  add(bytes: number): void {
    const sum = this.#bytes + bytes
    if (bytes > 0 && sum > this.#most) {
      const text = `the states of model '${this.#model}' come to ${sum} bytes over all sequences, want at most ${this.#most}`
      throw new ServeError('OVERLOADED', text)
    }
    this.#bytes = sum
  }
}

/** The states that one sequence keeps for its model between two requests. */
export class SequenceStates {
  readonly #memory: StateMemory
  /** By name of the output that brings the next. */
  readonly #current: Map<string, NamedTensor>
  readonly #initial: ReadonlyMap<string, NamedTensor>
  /** Bytes of its own states: initial states are shared. */
  #bytes = 0
  #isClosed = false

  constructor(rules: readonly StateRule[], memory: StateMemory) {
    this.#memory = memory
    this.#initial = new Map(rules.map(({ output, initial }) => [output, initial]))
    this.#current = new Map(this.#initial)
  }

  /** The inputs of the next request. */
  get inputs(): Iterable<NamedTensor> {
    return this.#current.values()
  }

  /** A sequence with this id begins anew. */
  reset(): void {
    for (const [output, initial] of this.#initial) this.#current.set(output, initial)
    this.#memory.add(-this.#bytes)
    this.#bytes = 0
  }

  /**
   * Keeps what a response brings; its bytes are copied.
   * @throws ServeError OVERLOADED.
   */
  take(outputs: readonly NamedTensor[]): void {
    if (this.#isClosed) return
    for (const { name, datatype, shape, data } of outputs) {
      const before = this.#current.get(name)
      const initial = this.#initial.get(name)
      if (before === undefined || initial === undefined) continue
      const more = data.byteLength - (before === initial ? 0 : before.data.byteLength)
      this.#memory.add(more)
      this.#bytes += more
      this.#current.set(name, { name: initial.name, datatype, shape, data: data.slice() })
    }
  }

  /** The sequence is over: what it has is read once more at most, by its last request. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#memory.add(-this.#bytes)
    this.#bytes = 0
  }
}
