import { openCallScope, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { SharedPlace } from '@tutti/protocol'
import { type OutputPlace, PlacingSink } from '@tutti/shared-memory'
import { decorateModel } from '../backend/decorate.ts'
import type {
  InferenceBackend,
  RequestedOutput,
  ResolvedModel,
} from '../backend/inference-backend.ts'
import type { PlacedInputs } from './placed-inputs.ts'
import { findRegion } from './read-place.ts'

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
 * Wraps a model so that its outputs go into shared memory where the request wants that: a sink gets them without bytes. The
 * regions are in use from the begin of the execution to its end. It begins once the inputs are copied.
 */
export function placeOutputs(
  model: ResolvedModel,
  outputs: readonly RequestedOutput[],
  inputs: PlacedInputs | undefined,
): ResolvedModel {
  const places = new Map<string, OutputPlace>()
  for (const { name, place } of outputs) if (place !== undefined) places.set(name, place)
  const late = inputs?.isLate === true ? inputs : undefined
  if (places.size === 0 && late === undefined) return model
  return decorateModel(model, (request, sink, o) => {
    const scope = openCallScope({ clock: systemClock, parent: o.signal })
    const { signal } = scope.context
    const placing = new PlacingSink(sink, places, scope)
    const begin = (): void => model.execute(request, placing, { ...o, signal })
    if (late === undefined) return begin()
    late.begun = late
      .copy(signal)
      .then(begin, (error: unknown) => placing.fail(ServeError.from(error), 'no'))
  })
}
