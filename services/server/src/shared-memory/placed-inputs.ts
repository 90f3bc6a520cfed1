import type { RestInput, SharedPlace, TensorMessage } from '@tutti/protocol'
import type { NamedTensor } from '@tutti/tensor'
import type { InferenceBackend } from '../inference-backend.ts'
import type { InputSource } from '../request/input-refusals.ts'
import { refuseRequest } from '../request/refuse.ts'
import { findRegion, readPlace } from './read-place.ts'

/** The call that a request came with. */
interface PlaceReader {
  readonly backend: Pick<InferenceBackend, 'regions' | 'identity'>
  /** Counts bytes that the request holds. @throws ServeError OVERLOADED */
  charge(bytes: number): void
}

/** The bytes of an input that lies in shared memory, copied: its client may change them at any time. Undefined for another input. */
export function placedData(
  { model, call }: InputSource,
  { name, parameters, contents }: TensorMessage,
): Uint8Array | undefined {
  const place = readPlace(name, parameters)
  if (place === undefined) return undefined
  if (contents !== undefined) {
    const text = `unexpected 'content' provided when using shared memory for input tensor '${name}' for model '${model.name}'`
    throw refuseRequest(text, `inputs.${name}`).withDetails({ model: model.name })
  }
  return readBytes(call, place)
}

/** The inputs of a REST request, with the bytes of those that lie in shared memory. */
export function withPlacedData(
  reader: PlaceReader,
  inputs: readonly RestInput[],
): readonly NamedTensor[] {
  return inputs.map(({ place, ...input }) =>
    place === undefined ? input : { ...input, data: readBytes(reader, place) },
  )
}

function readBytes(reader: PlaceReader, place: SharedPlace): Uint8Array {
  const region = findRegion(reader.backend, place.region)
  region.check(place)
  reader.charge(place.byteSize)
  return region.read(place)
}
