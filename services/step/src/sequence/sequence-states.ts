import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { fromConfigDatatype, type NamedTensor } from '@tutti/tensor'

/** Bytes that all sequences of a model version may keep together: states grow with every model that says so. */
const MAX_STATE_BYTES = 2 ** 30

/** State that the scheduler keeps for each sequence of a model (`sequence_batching.state`). */
export interface StateRule {
  readonly output: string
  /** Value for a new sequence: a tensor with the name of the input. */
  readonly initial: NamedTensor
  /** True if the client may ask for the state, because it is an output of the model too. */
  readonly isOutput: boolean
}

/** Joins the states of a config with their initial values. @param initial - by name of the input. */
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

/** Bound on the bytes of states that the sequences of one model version keep. */
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

  /** Adds bytes, or gives back a negative number. @throws ServeError OVERLOADED over the bound. */
  add(bytes: number): void {
    const sum = this.#bytes + bytes
    if (bytes > 0 && sum > this.#most) {
      const text = `the states of model '${this.#model}' come to ${sum} bytes over all sequences, want at most ${this.#most}`
      throw new ServeError('OVERLOADED', text)
    }
    this.#bytes = sum
  }
}

/** States that one sequence keeps for its model between two requests. */
export class SequenceStates {
  readonly #memory: StateMemory
  /** Current states, by the name of the output that brings the next state. */
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

  /** State inputs of the next request. */
  get inputs(): Iterable<NamedTensor> {
    return this.#current.values()
  }

  /** Sets the states back to their initial values, since a sequence with this id begins anew. */
  reset(): void {
    for (const [output, initial] of this.#initial) this.#current.set(output, initial)
    this.#memory.add(-this.#bytes)
    this.#bytes = 0
  }

  /**
   * Keeps the states in a response; their bytes are copied.
   *
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

  /** Releases the counted bytes, since the sequence is over. Its last request may still read the states. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#memory.add(-this.#bytes)
    this.#bytes = 0
  }
}
