import { type CallScope, openCallScope, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { SharedPlace } from '@tutti/protocol'
import type { Executed, NamedTensor, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import type { InferenceBackend, RequestedOutput, ResolvedModel } from '../inference-backend.ts'
import { decorateModel } from '../request/decorate.ts'
import { findRegion } from './read-place.ts'
import type { OutputPlace } from './region.ts'

const NOTHING = new Uint8Array(0)

/** @throws ServeError for a region that is not registered, or a place that is not in it. */
export function findOutputPlace(
  backend: Pick<InferenceBackend, 'regions' | 'identity'>,
  place: SharedPlace,
): OutputPlace {
  const region = findRegion(backend, place.region)
  region.check(place)
  return { region, place }
}

/**
 * A model whose outputs go into shared memory where the request wants that: a sink gets them without bytes. The regions are in use from
 * the begin of the execution to its end.
 */
export function placeOutputs(
  model: ResolvedModel,
  outputs: readonly RequestedOutput[],
): ResolvedModel {
  const places = new Map<string, OutputPlace>()
  for (const { name, place } of outputs) if (place !== undefined) places.set(name, place)
  if (places.size === 0) return model
  return decorateModel(model, (request, sink, o) => {
    const scope = openCallScope({ clock: systemClock, parent: o.signal })
    const { signal } = scope.context
    model.execute(request, new PlacingSink(sink, places, scope), { ...o, signal })
  })
}

/** Writes outputs into their places. What a caller has given up is not written: it may use the memory for something else by now. */
class PlacingSink implements ResponseSink {
  readonly #sink: ResponseSink
  readonly #places: ReadonlyMap<string, OutputPlace>
  readonly #scope: CallScope
  #isOver = false

  constructor(sink: ResponseSink, places: ReadonlyMap<string, OutputPlace>, scope: CallScope) {
    this.#sink = sink
    this.#places = places
    this.#scope = scope
    this.#use(1)
  }

  send(response: StepResponse): void {
    if (this.#isOver) return
    const { signal } = this.#scope.context
    try {
      if (signal.aborted) throw signal.reason
      const outputs = response.outputs.map((output) => this.#place(output))
      if (response.final) this.#end()
      this.#sink.send({ ...response, outputs })
    } catch (thrown) {
      const error = ServeError.from(thrown)
      // The model may have no end of its own: it hears that nobody reads on.
      this.#scope.cancel(error)
      this.fail(error, 'maybe')
    }
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    if (this.#isOver) return
    this.#end()
    this.#sink.fail(error, executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#isOver ? undefined : this.#sink.ready?.()
  }

  #place(output: NamedTensor): NamedTensor {
    const found = this.#places.get(output.name)
    if (found === undefined) return output
    const { region, place } = found
    const { byteLength } = output.data
    if (byteLength > place.byteSize) {
      const text = `shared memory size specified with the request for output '${output.name}' (${place.byteSize} bytes) should be at least ${byteLength} bytes to hold the results`
      throw new ServeError('RESPONSE_INVALID', text, { details: { field: output.name } })
    }
    region.write(place, output.data)
    return { ...output, data: NOTHING }
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
