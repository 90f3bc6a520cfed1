import { ServeError } from '@tutti/errors'
import { MEMBER_ID_LIMIT_BYTES } from './limits.ts'

/**
 * Bytes of prefix and repository each. All names of a subject together, every byte percent-encoded, stay below nats-server's
 * default max_control_line of 4096 bytes.
 */
const NAME_LIMIT_BYTES = 128
const ENCODED = /[.*>%\s\p{Cc}]/u

/** Encodes a prefix or a repository as a token of a subject. @throws ServeError SETTING_INVALID that names the field. */
export function settingToken(field: 'prefix' | 'repository', name: string): string {
  const problem = nameProblem(name, NAME_LIMIT_BYTES)
  if (problem !== undefined) throw settingError(field, name, problem)
  if (field === 'prefix' && (name.startsWith('$') || name === '_INBOX')) {
    throw settingError(field, name, 'want one that NATS does not use itself')
  }
  return encodeToken(name)
}

function settingError(field: string, name: string, problem: string): ServeError {
  return new ServeError('SETTING_INVALID', `subject ${field} "${name.slice(0, 64)}": ${problem}`, {
    details: { field },
  })
}

/** Encodes a member's id as a token of a subject. @throws ServeError INVALID_PARAMETER for an id that no member may have. */
export function memberToken(member: string): string {
  const problem = nameProblem(member, MEMBER_ID_LIMIT_BYTES)
  if (problem === undefined) return encodeToken(member)
  throw new ServeError('INVALID_PARAMETER', `subject member "${member.slice(0, 64)}": ${problem}`, {
    details: { field: 'member' },
  })
}

function nameProblem(name: string, limit: number): string | undefined {
  const size = Buffer.byteLength(name)
  if (size === 0) return `it is empty, want 1 to ${limit} bytes`
  if (size > limit) return `it has ${size} bytes, want at most ${limit}`
  return name.isWellFormed() ? undefined : 'it is no Unicode text'
}

/**
 * Percent-encodes the characters that a token must not contain: `.`, `*`, `>`, `%`, white space and control characters, as UTF-8
 * bytes. Others stay, so that names are readable in a broker's tools.
 */
export function encodeToken(name: string): string {
  if (!ENCODED.test(name)) return name
  let token = ''
  for (const character of name) {
    token += ENCODED.test(character) ? percentEncode(character) : character
  }
  return token
}

function percentEncode(character: string): string {
  let encoded = ''
  for (const byte of Buffer.from(character)) {
    encoded += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return encoded
}

/** Decodes a token of `encodeToken`. @returns the name; undefined if `encodeToken` makes no such token. */
export function decodeToken(token: string): string | undefined {
  if (token === '') return undefined
  try {
    const name = decodeURIComponent(token)
    return encodeToken(name) === token ? name : undefined
  } catch {
    // A stranger's subject: what is percent-encoded in it is not UTF-8.
    return undefined
  }
}
