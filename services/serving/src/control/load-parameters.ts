import { ServeError } from '@tutti/errors'
import type { LoadParameters } from '../backend/inference-backend.ts'

/** Prefix of the load parameters that hold files: `file:<version>/<name>`. */
export const FILE_PREFIX = 'file:'

/** A parameter of a load or unload request as it came, in either protocol. */
export interface ControlParameter {
  readonly name: string
  readonly value: string | Uint8Array | boolean | bigint | undefined
}

/**
 * Reads the parameters of a load.
 *
 * @throws ServeError INVALID_PARAMETER with Triton's text for an unknown name or a wrong type.
 */
export function readLoadParameters(parameters: Iterable<ControlParameter>): LoadParameters {
  let config: string | undefined
  const files = new Map<string, Uint8Array>()
  for (const { name, value } of parameters) {
    if (name === 'config') {
      if (typeof value !== 'string') throw wrongType(name, 'string_param')
      config = value
    } else if (name.startsWith(FILE_PREFIX)) {
      if (!(value instanceof Uint8Array)) throw wrongType(name, 'bytes_param')
      files.set(name.slice(FILE_PREFIX.length), value)
    } else {
      throw invalid(name, `unrecognized load parameter '${show(name)}'.`)
    }
  }
  return { ...(config !== undefined && { config }), files }
}

/**
 * Reads `unload_dependents` of an unload, and ignores parameters that Triton does not know.
 *
 * @throws ServeError INVALID_PARAMETER
 */
export function readUnloadDependents(parameters: Iterable<ControlParameter>): boolean {
  let isWanted = false
  for (const { name, value } of parameters) {
    if (name !== 'unload_dependents') continue
    if (typeof value !== 'boolean') {
      throw invalid(
        name,
        "invalid value type for 'unload_dependents' parameter, expected bool_param.",
      )
    }
    isWanted = value
  }
  return isWanted
}

function wrongType(name: string, expected: string): ServeError {
  return invalid(
    name,
    `invalid value type for load parameter '${show(name)}', expected ${expected}.`,
  )
}

function invalid(field: string, message: string): ServeError {
  return new ServeError('INVALID_PARAMETER', message, { details: { field: show(field) } })
}

/** Cuts a name that a client wrote so that it is short enough for a message. */
function show(name: string): string {
  return name.length > 200 ? `${name.slice(0, 200)}...` : name
}
