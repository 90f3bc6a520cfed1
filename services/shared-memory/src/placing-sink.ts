import type { CallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Executed, NamedTensor, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import { AT_ONCE_BYTES, type OutputPlace } from './region.ts'

const NOTHING = new Uint8Array(0)

/** Responses that wait for a write off the event loop: executions ask whether they may go on long before. */
const MAX_WAITING = 1024

interface PlacedOutput extends OutputPlace {
  readonly output: NamedTensor
}

/**
 * Writes outputs into their places in shared memory, and sends responses on without these bytes. After the call's signal has
 * aborted it writes nothing: the caller may use the memory for something else by then.
 */
export class PlacingSink implements ResponseSink {
  readonly #sink: ResponseSink
  readonly #places: ReadonlyMap<string, OutputPlace>
  readonly #scope: CallScope
  #isOver = false
  /** Resolves when all that came so far is written and sent; undefined if it is. Never rejects. */
  #writing: Promise<void> | undefined
  #waiting = 0

  constructor(sink: ResponseSink, places: ReadonlyMap<string, OutputPlace>, scope: CallScope) {
    this.#sink = sink
    this.#places = places
    this.#scope = scope
    this.#use(1)
  }

  send(response: StepResponse): void {
    if (this.#isOver) return
    const placed = this.#placed(response)
    const bytes = placed.reduce((sum, { output }) => sum + output.data.byteLength, 0)
    if (this.#writing === undefined && bytes <= AT_ONCE_BYTES) this.#sendNow(response, placed)
    else this.#sendLater(response, placed)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    if (this.#writing === undefined) this.#fail(error, executed, times)
    else this.#later(() => this.#fail(error, executed, times))
  }

  ready(): Promise<void> | undefined {
    if (this.#writing !== undefined) return this.#writing.then(() => this.ready())
    return this.#isOver ? undefined : this.#sink.ready?.()
  }

  #sendNow(response: StepResponse, placed: readonly PlacedOutput[]): void {
    try {
      for (const one of placed) {
        this.#check(one)
        one.region.write(one.place, one.output.data)
      }
      this.#send(response)
    } catch (thrown) {
      this.#giveUp(ServeError.from(thrown))
    }
  }

  #sendLater(response: StepResponse, placed: readonly PlacedOutput[]): void {
    if (this.#waiting >= MAX_WAITING) {
      const text = `${MAX_WAITING} responses wait to be written into shared memory, want no more`
      // The write that is under way ends with it.
      return this.#scope.cancel(new ServeError('OVERLOADED', text))
    }
    const giveBack = response.retain?.()
    this.#later(async () => {
      try {
        if (this.#isOver) return
        for (const one of placed) {
          this.#check(one)
          await one.region.store(one.output.data, one.place, this.#scope.context.signal)
        }
        this.#send(response)
      } catch (thrown) {
        this.#giveUp(ServeError.from(thrown))
      } finally {
        giveBack?.()
      }
    })
  }

  /** Does what must not overtake what is being written. */
  #later(act: () => void | Promise<void>): void {
    this.#waiting += 1
    this.#writing = this.#after(this.#writing, act)
  }

  async #after(last: Promise<void> | undefined, act: () => void | Promise<void>): Promise<void> {
    await last
    await act()
    this.#waiting -= 1
    if (this.#waiting === 0) this.#writing = undefined
  }

  #placed({ outputs }: StepResponse): readonly PlacedOutput[] {
    return outputs.flatMap((output) => {
      const found = this.#places.get(output.name)
      return found === undefined ? [] : [{ ...found, output }]
    })
  }

  /** @throws ServeError for an output that does not fit, or the signal's reason. */
  #check({ place, output }: PlacedOutput): void {
    const { signal } = this.#scope.context
    if (signal.aborted) throw signal.reason
    const { byteLength } = output.data
    if (byteLength <= place.byteSize) return
    const text = `shared memory size specified with the request for output '${output.name}' (${place.byteSize} bytes) should be at least ${byteLength} bytes to hold the results`
    throw new ServeError('RESPONSE_INVALID', text, { details: { field: output.name } })
  }

  /** Sends a response whose outputs are in their places. */
  #send(response: StepResponse): void {
    const { signal } = this.#scope.context
    if (signal.aborted) throw signal.reason
    if (response.final) this.#end()
    const outputs = response.outputs.map((output) =>
      this.#places.has(output.name) ? { ...output, data: NOTHING } : output,
    )
    this.#sink.send({ ...response, outputs })
  }

  #giveUp(error: ServeError): void {
    // The model may have no end of its own: it hears that nobody reads on.
    this.#scope.cancel(error)
    this.#fail(error, 'maybe')
  }

  #fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    if (this.#isOver) return
    this.#end()
    this.#sink.fail(error, executed, times)
  }

  #end(): void {
    this.#isOver = true
    this.#scope.close()
    this.#use(-1)
  }

  #use(count: 1 | -1): void {
    for (const { region } of this.#places.values()) region.uses += count
  }
}
