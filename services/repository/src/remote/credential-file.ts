import { ServeError } from '@tutti/errors'
import { readBounded } from '../bounded-read.ts'
import type { RepositoryUri } from '../repository-uri.ts'
import { membersOf, parseMembers } from './json-members.ts'

export type Environment = Readonly<Record<string, string | undefined>>
export type Texts = Readonly<Record<string, string>>

const MAX_BYTES = 1024 * 1024
const FIELD = 'TRITON_CLOUD_CREDENTIAL_PATH'

/**
 * The entry for a repository of the file that TRITON_CLOUD_CREDENTIAL_PATH names: the one whose name is the longest beginning of the
 * address.
 *
 * @returns undefined if there is none. @throws ServeError SETTING_INVALID
 */
export async function readCredentialEntry(
  { kind, uri }: Pick<RepositoryUri, 'kind' | 'uri'>,
  env: Environment,
): Promise<unknown> {
  const path = env[FIELD]
  if (!path) return undefined
  const file = parseJson(await readSetting(FIELD, path), { field: FIELD, path })
  const [found] = Object.entries(membersOf(membersOf(file)[kind]))
    .filter(([name]) => uri.startsWith(name))
    .toSorted(([a], [b]) => b.length - a.length)
  return found?.[1]
}

/** The fields of an entry as texts. */
export function textsOf(entry: unknown): Texts {
  const fields = Object.entries(membersOf(entry))
  return Object.fromEntries(fields.map(([name, value]) => [name, String(value)]))
}

/** Reads the file that a setting names. @throws ServeError SETTING_INVALID that names both. */
export async function readSetting(field: string, path: string): Promise<string> {
  try {
    return await readBounded(path, MAX_BYTES)
  } catch (error) {
    const { message } = ServeError.from(error)
    throw settingRefusal(field, `names '${path}', which cannot be read: ${message}`)
  }
}

/** Reads a file that may be absent. @returns '' then. @throws ServeError SETTING_INVALID */
export async function readIfThere(path: string): Promise<string> {
  try {
    return await readBounded(path, MAX_BYTES)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw settingRefusal(path, `cannot be read: ${ServeError.from(error).message}`)
  }
}

/** @throws ServeError SETTING_INVALID without what the file says. */
export function parseJson(
  text: string,
  { field, path }: { readonly field: string; readonly path: string },
): Readonly<Record<string, unknown>> {
  const members = parseMembers(text)
  if (members !== undefined) return members
  throw settingRefusal(field, `names '${path}', which cannot be read: it is no JSON`)
}

/** The refusal of credentials that a cloud's library would read. */
export const WITHOUT_LIBRARIES =
  'needs a library of the cloud, which `tutti serve` has and this program has not'

/** @throws ServeError SETTING_INVALID */
export function readEndpoint(field: string, env: Environment): URL | undefined {
  const text = env[field]
  if (!text) return undefined
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  if (url !== null && url.username === '' && url.search === '') return url
  throw settingRefusal(field, 'is no http(s)://HOST[:PORT][/PATH] without user and query')
}

export function settingRefusal(field: string, problem: string): ServeError {
  return new ServeError('SETTING_INVALID', `${field} ${problem}`, { details: { field } })
}
