import { measureJson } from '@tutti/formats'

/** Bytes that the parts of a document take while it is parsed and its tensors are made, at most (json-heap.test.ts). */
const OF_COMMA = 32
const OF_CONTAINER = 96
const OF_MEMBER = 160
/** Most bytes of memory for a byte of a text: a character takes two if the text is not Latin-1. */
const OF_BYTE = 2

/** Upper bounds on what a JSON document takes, from a count of its punctuation. */
export interface JsonNeeds {
  /** Objects, arrays and their members, without the first member of each. */
  readonly values: number
  /** Bytes of heap to parse the document and to make its tensors, at most. */
  readonly heapBytes: number
}

/** Measures what a document takes, in some nanoseconds a byte. The document may still be invalid JSON. */
export function jsonNeeds(bytes: Uint8Array): JsonNeeds {
  const { containers, commas, members } = measureJson(bytes)
  const heapBytes =
    OF_BYTE * bytes.byteLength + OF_COMMA * commas + OF_CONTAINER * containers + OF_MEMBER * members
  return { values: containers + commas, heapBytes }
}
