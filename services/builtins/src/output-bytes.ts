import { DATATYPES, elementCount } from '@tutti/tensor'
import type { Port } from './ports.ts'

/**
 * Most bytes of the outputs of one request. Few bytes of boxes or indices can ask for gigabytes, for which the system would end the process.
 * No flag: what is between two models of an ensemble is far below.
 */
export const MAX_OUTPUT_BYTES = 2 ** 30
/** Bytes of a text in an output, at least: its length. */
const TEXT_BYTES = 4

/** Counts the least bytes of an output; an extent that is not known counts as 1, and a text as empty. */
export function leastBytes({ datatype, dims }: Port): number {
  return elementCount(dims.map(Math.abs)) * (DATATYPES[datatype].itemSize ?? TEXT_BYTES)
}
