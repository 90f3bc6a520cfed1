import { ServeError } from '@tutti/errors'
import { readBoundedText } from '../bounded-read.ts'
import { membersOf, parseMembers } from '../json-members.ts'
import type { RepositoryUri } from '../repository-uri.ts'

export type EnvironmentVariables = Readonly<Record<string, string | undefined>>
export type Texts = Readonly<Record<string, string>>

const MAX_BYTES = 1024 * 1024
const FIELD = 'TRITON_CLOUD_CREDENTIAL_PATH'

/**
 * Reads the entry for a repository from the file that TRITON_CLOUD_CREDENTIAL_PATH names. If several entries' names begin the
 * address, the longest name counts.
 *
 * @returns undefined without such a variable or entry.
 * @throws ServeError SETTING_INVALID if the file cannot be read.
 */
export async function readCredentialEntry(
  { kind, uri }: Pick<RepositoryUri, 'kind' | 'uri'>,
  env: EnvironmentVariables,
): Promise<unknown> {
  const path = env[FIELD]
  if (!path) return undefined
  const file = parseCredentialJson(await readSetting(FIELD, path), { field: FIELD, path })
  const [found] = Object.entries(membersOf(membersOf(file)[kind]))
    .filter(([name]) => uri.startsWith(name))
    .toSorted(([a], [b]) => b.length - a.length)
  return found?.[1]
}

/** Converts the fields of an entry to texts; none if the entry is not an object. */
export function textsOf(entry: unknown): Texts {
  const fields = Object.entries(membersOf(entry))
  return Object.fromEntries(fields.map(([name, value]) => [name, String(value)]))
}

/** Reads the file that a setting names. @throws ServeError SETTING_INVALID that names the setting and the file. */
export async function readSetting(field: string, path: string): Promise<string> {
  try {
    return await readBoundedText(path, MAX_BYTES)
  } catch (error) {
    const { message } = ServeError.from(error)
    throw settingRefusal(field, `names '${path}', which cannot be read: ${message}`)
  }
}

/** Reads a file that may be absent. @returns '' then. @throws ServeError SETTING_INVALID */
export async function readIfThere(path: string): Promise<string> {
  try {
    return await readBoundedText(path, MAX_BYTES)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw settingRefusal(path, `cannot be read: ${ServeError.from(error).message}`)
  }
}

/** Parses the JSON of the file that a setting names. @throws ServeError SETTING_INVALID, without the file's content. */
export function parseCredentialJson(
  text: string,
  { field, path }: { readonly field: string; readonly path: string },
): Readonly<Record<string, unknown>> {
  const members = parseMembers(text)
  if (members !== undefined) return members
  throw settingRefusal(field, `names '${path}', which cannot be read: it is no JSON`)
}

/** Message about credentials that only a cloud's library can read, in a program without the library. */
export const WITHOUT_LIBRARIES =
  'needs a library of the cloud, which `tutti serve` has and this program has not'

/**
 * Reads a server's URL from a variable; undefined if the variable is not set.
 *
 * @throws ServeError SETTING_INVALID if it is no URL.
 */
export function readEndpoint(field: string, env: EnvironmentVariables): URL | undefined {
  const text = env[field]
  if (!text) return undefined
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  if (url !== null && url.username === '' && url.search === '') return url
  throw settingRefusal(field, 'is no http(s)://HOST[:PORT][/PATH] without user and query')
}

export function settingRefusal(field: string, problem: string): ServeError {
  return new ServeError('SETTING_INVALID', `${field} ${problem}`, { details: { field } })
}
