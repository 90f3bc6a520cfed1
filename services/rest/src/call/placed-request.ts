import { ServeError } from '@tutti/errors'
import type { RestInferRequest } from '@tutti/protocol'
import { findOutputPlace, PlacedInputs, placeOutputs, type ResolvedModel } from '@tutti/serving'
import type { NamedTensor } from '@tutti/tensor'
import { refuseForeignPage } from './refuse-foreign-page.ts'
import type { RestCall } from './rest-call.ts'

/** A REST request whose tensors may lie in shared memory, ready to be executed. */
interface PlacedRequest {
  readonly inputs: readonly NamedTensor[]
  /** Writes outputs where the request wants them. */
  readonly model: ResolvedModel
  /** Names of the outputs whose bytes are not in the answer. */
  readonly outputs: ReadonlySet<string>
}

const NONE: ReadonlySet<string> = new Set()

/**
 * Finds the tensors of a request in shared memory.
 *
 * @throws ServeError for places that are not there, or that the caller may not use.
 */
export function placeTensors(
  call: RestCall,
  model: ResolvedModel,
  request: RestInferRequest,
): PlacedRequest {
  const { inputs, outputs } = request
  const placed = outputs.filter(isPlaced)
  if (placed.length === 0 && !inputs.some(isPlaced)) return { inputs, model, outputs: NONE }
  refuseForeignPage(call.caller.headers)
  const wanted = placed.flatMap(({ name, classification, place }) =>
    place === undefined
      ? []
      : [{ name, classification, place: findOutputPlace(call.backend, place) }],
  )
  const reads = new PlacedInputs(call)
  return {
    inputs: inputs.map(({ place, ...input }) =>
      place === undefined ? input : { ...input, data: reads.read(place) },
    ),
    model: placeOutputs(model, wanted, reads),
    outputs: new Set(wanted.map(({ name }) => name)),
  }
}

/** Passes a request on without looking for shared memory. @throws ServeError UNSUPPORTED if it has tensors there. */
export function refusePlaces(
  _call: RestCall,
  model: ResolvedModel,
  { inputs, outputs }: RestInferRequest,
): PlacedRequest {
  if (!inputs.some(isPlaced) && !outputs.some(isPlaced)) return { inputs, model, outputs: NONE }
  throw new ServeError('UNSUPPORTED', 'this port takes no tensors in shared memory')
}

function isPlaced({ place }: { readonly place?: unknown }): boolean {
  return place !== undefined
}
