import { type ConfiguredBuiltin, leastBytes, MAX_CLASS_SCORES, type Port } from '@tutti/builtins'
import type { NamedTensor, StepRequest } from '@tutti/tensor'
import { integersOf, misfit } from './code/code-inputs.ts'
import { type CountedOutputs, checkOutputBytes } from './output-bound.ts'
import { readPlaces, takenBytes } from './taken-places.ts'

/**
 * Holds the outputs of a request against their bound before they are made. Code counts what depends on values itself, and texts that it makes.
 *
 * @param outputs - of the signature; an extent that depends on values is -1.
 * @throws ServeError MESSAGE_TOO_LARGE; INVALID_REQUEST for places of `take` that are beyond the extent, and too many classes of `nms`.
 */
export function checkOutputs(
  { builtin, options }: Pick<ConfiguredBuiltin, 'builtin' | 'options'>,
  outputs: readonly Port[],
  request: StepRequest,
): void {
  const known = outputs.reduce((sum, port) => sum + leastBytes(port), 0)
  checkOutputBytes({ builtin: builtin.name, bytes: known })
  const places =
    builtin.name === 'take' ? readPlaces(request.inputs, Number(options['axis'])) : undefined
  if (builtin.name === 'nms' && options['classAware'] !== false) checkClasses(request.inputs)
  if (builtin.kind !== 'onnx' || outputs.every(({ datatype }) => datatype !== 'BYTES')) return
  const texts = places === undefined ? givenBytes(request) : { bytes: takenBytes(places) }
  checkOutputBytes({ builtin: builtin.name, ...texts })
}

/** @throws ServeError INVALID_REQUEST for more scores of each box for each class than there is memory for. */
function checkClasses(inputs: readonly NamedTensor[]): void {
  const classes = inputs.find(({ name }) => name === 'classes')
  if (classes === undefined) return
  const all = integersOf(classes)
  const most = Math.floor(MAX_CLASS_SCORES / all.length)
  const found = new Set<number>()
  for (const one of all) {
    if (found.add(one).size <= most) continue
    throw misfit('classes', `more than ${most} classes of ${all.length} boxes`, 'fewer')
  }
}

/** Graphs but that of `take` give each text of an input once at most. A tensor that feeds several inputs counts for each. */
function givenBytes({ inputs }: StepRequest): Omit<CountedOutputs, 'builtin'> {
  const texts = inputs.filter(({ datatype }) => datatype === 'BYTES')
  return { bytes: texts.reduce((sum, { data }) => sum + data.byteLength, 0), bound: 'up to' }
}
