import { bug } from '@tutti/errors'
import { elementCount, type NamedTensor, walkBytesTensor } from '@tutti/tensor'
import { integersOf, integerText, misfit } from './code/code-inputs.ts'

/** Bytes of the length before each text. */
const PREFIX_BYTES = 4

/** The places of a request to `take`. */
export interface Places {
  readonly input: NamedTensor
  /** Axis of `input` that they are about, counted from the first dimension. */
  readonly axis: number
  /** From the begin or, negative, from the end. */
  readonly places: Int32Array | Float64Array
}

/** Reads the places. @throws ServeError INVALID_REQUEST for one that is beyond the extent. */
export function readPlaces(inputs: readonly NamedTensor[], axis: number): Places {
  const [input, indices] = ['input', 'indices'].map((name) =>
    inputs.find((one) => one.name === name),
  )
  if (input === undefined || indices === undefined) throw bug('take has no input')
  const at = axis < 0 ? axis + input.shape.length : axis
  const extent = input.shape[at] ?? 0
  const places = integersOf(indices)
  const wrong = places.findIndex((place: number) => place < -extent || place >= extent)
  if (wrong === -1) return { input, axis: at, places }
  const want = extent === 0 ? 'none: there is no element' : `${-extent} to ${extent - 1}`
  throw misfit('indices', `place ${integerText(indices, wrong)}`, want)
}

/** Counts the bytes of the texts that are taken, each with its length. */
export function takenBytes({ input, axis, places }: Places): number {
  const extent = input.shape[axis] ?? 0
  const inner = elementCount(input.shape.slice(axis + 1))
  const atPlace = new Float64Array(extent)
  let element = 0
  walkBytesTensor(input.data, (begin, end) => {
    const place = Math.floor(element / inner) % extent
    atPlace[place] = (atPlace[place] ?? 0) + PREFIX_BYTES + end - begin
    element += 1
  })
  let bytes = 0
  for (const place of places) bytes += atPlace[place < 0 ? place + extent : place] ?? 0
  return bytes
}
