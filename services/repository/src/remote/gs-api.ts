import { type BucketApi, type BucketPage, encode, parseSize } from '../fetch/bucket.ts'
import { invalidArtifact } from '../fetch/tree-plan.ts'
import { membersOf, parseMembers } from '../json-members.ts'

const ENDPOINT = new URL('https://storage.googleapis.com')
const FOLDERS = 'nextPageToken,prefixes'
const OBJECTS = 'nextPageToken,items(name,size,generation,contentEncoding)'

/**
 * Builds the interface to a bucket of Google Cloud Storage, over its JSON API.
 *
 * @param o.endpoint - address of a server that is not Google's.
 * @param o.token - gives the token of a request; undefined for a request without a token.
 */
export function gsApi({
  bucket,
  endpoint = ENDPOINT,
  token,
}: {
  readonly bucket: string
  readonly endpoint: URL | undefined
  readonly token: () => Promise<string | undefined>
}): BucketApi {
  const base = `${endpoint.href.replace(/\/$/, '')}/storage/v1/b/${encode(bucket)}/o`
  return {
    start: /^\s*\{/,
    page: ({ prefix, token: next, isFolders }) => {
      const url = new URL(base)
      const page = next === '' ? '' : `&pageToken=${encode(next)}`
      const fields = isFolders ? `&delimiter=%2F&fields=${FOLDERS}` : `&fields=${OBJECTS}`
      url.search = `prefix=${encode(prefix)}${page}${fields}`
      return { url }
    },
    toPage,
    // The listed generation, even if there is a newer one by now.
    object: ({ key, tag }) => ({
      url: new URL(`${base}/${encode(key)}?alt=media&generation=${encode(tag)}`),
    }),
    tagOf: (headers) => String(headers['x-goog-generation'] ?? ''),
    sign: async ({ headers = {} }) => {
      const value = await token()
      return value === undefined ? headers : { ...headers, authorization: `Bearer ${value}` }
    },
    toRefusal: (text) => {
      const error = membersOf(parseMembers(text)?.['error'])
      return { detail: toText(error['message']), isDenied: false }
    },
  }
}

function toPage(text: string): BucketPage | undefined {
  const page = parseMembers(text)
  if (page === undefined) return undefined
  const { items, prefixes, nextPageToken } = page
  return {
    objects: listOf(items).map(toObject),
    folders: listOf(prefixes).map(toText),
    next: toText(nextPageToken),
  }
}

function toObject(item: unknown) {
  const { name, size, generation, contentEncoding } = membersOf(item)
  const key = toText(name)
  // It is sent unpacked, so that nothing says whether it came whole.
  if (contentEncoding === 'gzip')
    throw invalidArtifact(key, 'it is stored with Content-Encoding gzip')
  return { key, tag: toText(generation), sizeBytes: parseSize(key, toText(size)) }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
