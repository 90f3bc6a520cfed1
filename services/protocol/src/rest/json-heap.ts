import { measureJson } from '@tutti/formats'

/** Bytes that the parts of a document take while it is parsed and its tensors are made, at most (json-heap.test.ts). */
const OF_COMMA = 32
const OF_CONTAINER = 96
const OF_MEMBER = 160
/** A text has two bytes a character if it is not Latin-1. */
const OF_BYTE = 2

/** The size of a JSON document, as its punctuation tells. */
export interface JsonNeeds {
  /** Objects, arrays, and what they hold but for the first in each. */
  readonly values: number
  /** Memory to parse it and to make its tensors, at most. */
  readonly heapBytes: number
}

/** Measures what a document takes, in some nanoseconds a byte: it may still be no JSON. */
export function jsonNeeds(bytes: Uint8Array): JsonNeeds {
  const { containers, commas, members } = measureJson(bytes)
  const heapBytes =
    OF_BYTE * bytes.byteLength + OF_COMMA * commas + OF_CONTAINER * containers + OF_MEMBER * members
  return { values: containers + commas, heapBytes }
}
