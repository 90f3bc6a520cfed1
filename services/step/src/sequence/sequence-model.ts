import type { BatchOptions, EngineRequest, ExecutionTimes, LoadedModel } from '@tutti/backends'
import { type CancelSignal, ServeError } from '@tutti/errors'
import {
  DATATYPES,
  EMPTY_CONTEXT,
  elementCount,
  type NamedTensor,
  type ResponseSink,
  type StepRequest,
  type StepResponse,
} from '@tutti/tensor'
import type { Sequence, SequenceEntry } from './sequence.ts'
import { SequenceRequest } from './sequence-request.ts'
import { SequenceStates, type StateMemory, type StateRule } from './sequence-states.ts'

/** The calls that a model of sequences makes to its queue. */
interface SequencePlaces {
  execute(item: EngineRequest): SequenceEntry<unknown> | undefined
  /** Notes that all that an instance held of its sequences is gone. */
  lose(instance: number): void
  /** Ends a sequence; what waits of it fails with the error. */
  endEarly(sequence: Sequence<unknown>, error: ServeError): void
}

export interface SequenceModelOptions {
  readonly places: SequencePlaces
  readonly states: readonly StateRule[]
  readonly memory: StateMemory
  /** Control inputs of a place in the batch without a request; undefined if places do not matter. */
  readonly padding: readonly NamedTensor[] | undefined
  /** Makes the request for the next execution of an iterative sequence. */
  readonly toNext?: ((request: SequenceRequest) => StepRequest) | undefined
}

/**
 * Model between the sequence scheduler and its engine. It puts each request at its place in the batch, and keeps the states of a
 * sequence from one request to the next.
 */
export class SequenceModel implements LoadedModel {
  readonly #loaded: LoadedModel
  readonly #batching: SequenceModelOptions

  constructor(loaded: LoadedModel, o: SequenceModelOptions) {
    this.#loaded = loaded
    this.#batching = o
  }

  execute(batch: readonly EngineRequest[], o: BatchOptions): Promise<ExecutionTimes> {
    const placed = batch.map((one) => this.#place(one, o.instance))
    const { padding } = this.#batching
    const last = Math.max(...placed.map(({ slot }) => slot))
    const [first] = placed
    if (padding === undefined || first === undefined || last + 1 === batch.length) {
      return this.#loaded.execute(
        placed.map(({ entry }) => entry),
        o,
      )
    }
    const empty = toEmpty(first.entry.request, padding)
    const padded: EngineRequest[] = Array.from({ length: last + 1 }, () => empty)
    for (const { entry, slot } of placed) padded[slot] = entry
    return this.#loaded.execute(padded, new PaddedOptions(o, placed))
  }

  close(): Promise<void> {
    return this.#loaded.close()
  }

  #place(one: EngineRequest, instance: number) {
    const { places, toNext } = this.#batching
    const { request } = one
    const found = places.execute(one)
    const lost = (): void => places.lose(instance)
    if (found === undefined || !(request instanceof SequenceRequest)) {
      return { slot: found?.slot ?? 0, entry: { request, sink: new SequenceSink(one.sink, lost) } }
    }
    const { sequence, slot } = found
    const sink = toNext === undefined ? one.sink : new IterativeSink(one.sink, sequence)
    const again = toNext && { again: () => one.again?.(toNext(request)) }
    const keeping = this.#keepStates(request, sequence)
    return { slot, entry: { request, sink: new SequenceSink(sink, lost, keeping), ...again } }
  }

  /** Gives the request the states of its sequence. @returns undefined for a model without. */
  #keepStates(request: SequenceRequest, sequence: Sequence<unknown>): StateKeeping | undefined {
    const { states: rules, memory, places } = this.#batching
    if (rules.length === 0) return undefined
    const states = statesOf(sequence, rules, memory)
    if (request.context.sequenceStart) states.reset()
    request.inputs.push(...states.inputs)
    return {
      keep: (response) => {
        states.take(response.outputs)
        return { ...response, outputs: response.outputs.filter(isForClient(request, rules)) }
      },
      broken: (error) => places.endEarly(sequence, error),
    }
  }
}

/** Numbers the responses of a request over all of its executions. */
class IterativeSink implements ResponseSink {
  readonly #sink: ResponseSink
  readonly #sequence: Sequence<unknown>

  constructor(sink: ResponseSink, sequence: Sequence<unknown>) {
    this.#sink = sink
    this.#sequence = sequence
  }

  send(response: StepResponse): void {
    this.#sink.send({ ...response, index: this.#sequence.responses++ })
  }

  fail(...failure: Parameters<ResponseSink['fail']>): void {
    this.#sink.fail(...failure)
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }
}

/** Tells whether the client gets an output. It gets no state, unless that is an output of the model too and was requested. */
function isForClient({ wanted }: SequenceRequest, rules: readonly StateRule[]) {
  return ({ name }: NamedTensor): boolean => {
    const state = rules.find(({ output }) => output === name)
    if (state === undefined) return true
    return state.isOutput && (wanted.length === 0 || wanted.includes(name))
  }
}

function statesOf(
  sequence: Sequence<unknown>,
  rules: readonly StateRule[],
  memory: StateMemory,
): SequenceStates {
  const states = sequence.states ?? new SequenceStates(rules, memory)
  sequence.states = states
  // Nobody reads what its last request brings.
  if (sequence.isOver) states.close()
  return states
}

/** The way in which the responses of a model that has states are treated. */
interface StateKeeping {
  /** Keeps the states. @returns what the client gets. @throws ServeError */
  keep(response: StepResponse): StepResponse
  /** The sequence cannot go on: its next request would compute with a state that is too old. */
  broken(error: ServeError): void
}

/** Takes the states out of what a model answers, and notes when the engine is gone. */
class SequenceSink implements ResponseSink {
  readonly #sink: ResponseSink
  readonly #lost: () => void
  readonly #states: StateKeeping | undefined

  constructor(sink: ResponseSink, lost: () => void, states?: StateKeeping) {
    this.#sink = sink
    this.#lost = lost
    this.#states = states
  }

  send(response: StepResponse): void {
    if (this.#states === undefined) return this.#sink.send(response)
    let kept: StepResponse
    try {
      kept = this.#states.keep(response)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      this.#states.broken(error)
      return this.#sink.fail(error, 'maybe')
    }
    this.#sink.send(kept)
  }

  fail(...failure: Parameters<ResponseSink['fail']>): void {
    const [{ reason }] = failure
    if (reason === 'ENGINE_STOPPED') this.#lost()
    this.#sink.fail(...failure)
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }
}

/** Makes the request of an empty place: inputs of zeros in the shapes of a present request. Its answer goes nowhere. */
function toEmpty(like: StepRequest, padding: readonly NamedTensor[]): EngineRequest {
  const controls = new Map(padding.map((tensor) => [tensor.name, tensor]))
  const { requestedOutputs, batchSize } = like
  const inputs = like.inputs.map((tensor) => {
    return controls.get(tensor.name) ?? { ...tensor, data: zeros(tensor) }
  })
  return {
    request: { context: EMPTY_CONTEXT, inputs, requestedOutputs, batchSize },
    sink: { send: () => {}, fail: () => {} },
  }
}

function zeros({ datatype, shape }: NamedTensor): Uint8Array {
  // An empty text is its length, 0, in four bytes.
  return new Uint8Array(elementCount(shape) * (DATATYPES[datatype].itemSize ?? 4))
}

/** Tells the engine of callers that leave by their place among the filled-up ones. */
class PaddedOptions implements BatchOptions {
  readonly instance: number
  readonly #options: BatchOptions
  readonly #placed: readonly { readonly slot: number }[]

  constructor(o: BatchOptions, placed: readonly { readonly slot: number }[]) {
    this.instance = o.instance
    this.#options = o
    this.#placed = placed
  }

  get signal(): CancelSignal {
    return this.#options.signal
  }

  onAbandon(listener: (request: number) => void): void {
    this.#options.onAbandon?.((place) => listener(this.#placed[place]?.slot ?? place))
  }

  release(times?: ExecutionTimes): void {
    this.#options.release?.(times)
  }
}
