import type { Shape } from '@tutti/tensor'
import { z } from 'zod'
import { refuseDims, refuseOption } from './input-reader.ts'
import type { Port } from './ports.ts'

/** Most dimensions of a tensor that options can speak about. */
export const MAX_RANK = 8

/** Makes the schema of an option that names one dimension, as NumPy counts them. */
export function axisOption(about: string) {
  return z
    .int()
    .min(-MAX_RANK)
    .max(MAX_RANK - 1)
    .describe(`${about}; negative counts from the last dimension`)
}

/** Counts an axis from the first dimension. @throws PortFault if there is no such dimension. */
export function toAxis(path: string, axis: number, rank: number): number {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis
  const want = rank === 0 ? 'a tensor with dimensions' : `${-rank} to ${rank - 1}`
  return refuseOption(path, `${axis} for ${rank} dimensions`, want)
}

/** Returns the dims with another extent at an axis. */
export function withExtent(dims: Shape, axis: number, extent: number): Shape {
  return dims.map((old, i) => (i === axis ? extent : old))
}

/** The extent that all ports have at a place; -1 if none is known. @throws PortFault if they differ. */
export function commonExtent(ports: readonly Port[], at: number): number {
  const known = ports.find(({ dims }) => (dims[at] ?? -1) !== -1)
  const extent = known?.dims[at] ?? -1
  const other = ports.find(({ dims }) => ![extent, -1].includes(dims[at] ?? -1))
  if (other === undefined) return extent
  return refuseDims(other, `extent ${extent} at axis ${at}, as ${known?.name} has`)
}

/** @throws PortFault for more than `most` along the first dimension. */
export function checkCount(port: Port, most: number): void {
  if ((port.dims[0] ?? -1) > most) refuseDims(port, `at most ${most} along the first dimension`)
}
