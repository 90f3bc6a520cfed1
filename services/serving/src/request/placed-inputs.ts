import type { CancelSignal } from '@tutti/errors'
import type { SharedPlace, TensorMessage } from '@tutti/protocol'
import { AT_ONCE_BYTES, type Region } from '@tutti/shared-memory'
import type { InferenceBackend } from '../backend/inference-backend.ts'
import { findRegion, readPlace } from './read-place.ts'
import { refuseRequest } from './refuse.ts'

/** The call that a request came with. */
interface PlaceReader {
  readonly backend: Pick<InferenceBackend, 'regions' | 'identity'>
  /** Counts bytes that the request holds. @throws ServeError OVERLOADED */
  charge(bytes: number): void
}

/** A request as its inputs are read. */
interface PlacedSource {
  readonly model: { readonly name: string }
  readonly call: PlaceReader
  placed?: PlacedInputs
}

interface LateRead {
  readonly region: Region
  readonly place: SharedPlace
  readonly bytes: Buffer
}

/** The inputs of one request that lie in shared memory. They are copied: their client may change them at any time. */
export class PlacedInputs {
  readonly #reader: PlaceReader
  readonly #late: LateRead[] = []
  #bytes = 0
  /** Resolves once the model has begun or the request has failed, if not all was copied at once. Never rejects. */
  begun: Promise<void> | undefined

  constructor(reader: PlaceReader) {
    this.#reader = reader
  }

  /** True if not all inputs were copied at once. */
  get isLate(): boolean {
    return this.#late.length > 0
  }

  /**
   * Reads the bytes of a place; of a large request only once `copy` has ended. @throws ServeError for a place that is not there,
   * OVERLOADED.
   */
  read(place: SharedPlace): Uint8Array {
    const { backend } = this.#reader
    const region = findRegion(backend, place.region)
    region.check(place)
    this.#reader.charge(place.byteSize)
    this.#bytes += place.byteSize
    if (this.#bytes <= AT_ONCE_BYTES) return region.read(place)
    const bytes = region.reserve(place)
    this.#late.push({ region, place, bytes })
    return bytes
  }

  /** Copies the rest. @throws ServeError if an object has become too small, or the signal's reason. */
  async copy(signal: CancelSignal): Promise<void> {
    for (const { region } of this.#late) region.uses += 1
    try {
      for (const { region, place, bytes } of this.#late) await region.fill(bytes, place, signal)
      if (signal.aborted) throw signal.reason
    } finally {
      for (const { region } of this.#late) region.uses -= 1
    }
  }
}

/**
 * Returns the bytes of an input in shared memory, which are copied by the end of `source.placed.copy`; undefined for another
 * input.
 */
export function placedData(
  source: PlacedSource,
  { name, parameters, contents }: TensorMessage,
): Uint8Array | undefined {
  const place = readPlace(name, parameters)
  if (place === undefined) return undefined
  const { model, call } = source
  if (contents !== undefined) {
    const text = `unexpected 'content' provided when using shared memory for input tensor '${name}' for model '${model.name}'`
    throw refuseRequest(text, `inputs.${name}`).withDetails({ model: model.name })
  }
  source.placed ??= new PlacedInputs(call)
  return source.placed.read(place)
}
