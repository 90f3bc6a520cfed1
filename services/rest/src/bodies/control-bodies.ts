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

/** @throws ServeError MALFORMED_MESSAGE, INVALID_PARAMETER; a file that is not base64 is one of them. */
export function parseLoadBody(body: Uint8Array): LoadParameters {
  return readLoadParameters(parseParameters(body).map(toLoadParameter))
}

/** Whether the models that an ensemble needs go with it: as in Triton, if the parameter is `true` itself. @throws ServeError MALFORMED_MESSAGE */
export function parseUnloadBody(body: Uint8Array): boolean {
  return parseParameters(body).some(
    ([name, value]) => name === 'unload_dependents' && value === true,
  )
}

/** `{"ready": true}` asks for ready models only; the body may be empty. */
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
