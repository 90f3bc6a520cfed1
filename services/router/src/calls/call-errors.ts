import { ServeError } from '@tutti/errors'
import type { ResolvedEntry } from '../catalog/catalog.ts'

/** Makes the error for an output of a step that is not wanted. @param wanted - undefined if it came twice. */
export function outputError(
  { entry }: ResolvedEntry,
  output: string,
  wanted: readonly string[] | undefined,
): ServeError {
  const problem =
    wanted === undefined ? `"${output}" twice` : `"${output}", want ${wanted.join(', ')}`
  return new ServeError('RESPONSE_INVALID', `model '${entry.name}': got output ${problem}`)
}
