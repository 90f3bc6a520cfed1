import { ServeError } from '@tutti/errors'
import { parseJson } from '@tutti/protocol'
import {
  type ControlParameter,
  FILE_PREFIX,
  type LoadParameters,
  readLoadParameters,
} from '@tutti/serving'

/*
 * The bodies of index, load and unload requests; those of the latter two: `{"parameters": {...}}`, or nothing. JSON of the wrong shape is INTERNAL, that is HTTP
 * 500, with Triton's texts.
 */

/**
 * Reads the body of a load request.
 *
 * @throws ServeError MALFORMED_MESSAGE, INVALID_PARAMETER, such as a file that is not base64.
 */
export function parseLoadBody(body: Uint8Array): LoadParameters {
  return readLoadParameters(parseParameters(body).map(toLoadParameter))
}

/**
 * Reads the body of an unload request.
 *
 * @returns true to unload the models that an ensemble needs, too: as in Triton, only if `unload_dependents` is `true` itself.
 * @throws ServeError MALFORMED_MESSAGE
 */
export function parseUnloadBody(body: Uint8Array): boolean {
  return parseParameters(body).some(
    ([name, value]) => name === 'unload_dependents' && value === true,
  )
}

/**
 * Reads the body of an index request.
 *
 * @returns true for `{"ready": true}`, which asks for ready models only; false if it is empty.
 */
export function parseReadyOnly(body: Uint8Array): boolean {
  if (body.byteLength === 0) return false
  const { value } = parseJson(body)
  if (typeof value !== 'object' || value === null || !('ready' in value)) return false
  if (typeof value.ready === 'boolean') return value.ready
  throw new ServeError('MALFORMED_MESSAGE', 'attempt to access JSON non-boolean as boolean', {
    code: 'INTERNAL',
    details: { field: 'ready' },
  })
}

function parseParameters(body: Uint8Array): readonly (readonly [string, unknown])[] {
  if (body.byteLength === 0) return []
  const { value } = parseJson(body)
  if (typeof value !== 'object' || value === null || !('parameters' in value)) return []
  const { parameters } = value
  if (typeof parameters !== 'object' || parameters === null || Array.isArray(parameters)) {
    throw malformed('attempt to get members for non-object')
  }
  return Object.entries(parameters)
}

function toLoadParameter([name, value]: readonly [string, unknown]): ControlParameter {
  if (typeof value !== 'string') throw malformed('attempt to access JSON non-string as string')
  return { name, value: name.startsWith(FILE_PREFIX) ? toBytes(name, value) : value }
}

/** Node reads what it can of base64; what is not all of it would load as another file. */
function toBytes(name: string, text: string): Uint8Array {
  const packed = text.replace(/[\r\n]/g, '')
  // Its end alone is searched for the padding: a pattern would look at each `=` for whether none but such follow.
  const digits = packed.length - (/={0,2}$/.exec(packed.slice(-2))?.[0].length ?? 0)
  const bytes = Buffer.from(packed, 'base64')
  if (digits === Math.ceil((bytes.byteLength * 4) / 3) && /^[A-Za-z0-9+/]*={0,2}$/.test(packed)) {
    return bytes
  }
  const field = name.slice(0, 200)
  throw new ServeError('INVALID_PARAMETER', `load parameter '${field}': want base64`, {
    details: { field },
  })
}

function malformed(message: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', message, { code: 'INTERNAL' })
}
