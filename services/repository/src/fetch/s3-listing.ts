import { createHash } from 'node:crypto'
import { ServeError } from '@tutti/errors'
import { addText } from '../content-hash.ts'
import { persist, TransientFailure } from './attempts.ts'
import type { FetchContext } from './fetch-options.ts'
import type { S3Client } from './s3-client.ts'
import { readElements, readTag } from './s3-xml.ts'
import { invalid, type TreePlan } from './tree-plan.ts'

/** An object below the prefix of a model. */
export interface S3Object {
  readonly key: string
  /** Below the model's directory. */
  readonly path: string
  readonly etag: string
  readonly size: number
}

interface Page {
  readonly objects: readonly {
    readonly key: string
    readonly etag: string
    readonly size: number
  }[]
  /** '' if it is the last one. */
  readonly next: string
}

/**
 * Lists all objects below a prefix. Keys that end in `/` are folders that somebody made.
 *
 * @param plan - takes every path, and refuses those that lead out or are too many.
 * @throws ServeError ARTIFACT_NOT_FOUND if there are none.
 */
export async function listObjects(
  s3: S3Client,
  prefix: string,
  o: { readonly context: FetchContext; readonly plan: TreePlan; readonly shown: string },
): Promise<readonly S3Object[]> {
  const found: S3Object[] = []
  const seen = new Set<string>()
  for (let token = ''; ; ) {
    const page = await persist(o.context, () => readPage(s3, prefix, token))
    for (const { key, etag, size } of page.objects) {
      const name = key.slice(prefix.length)
      if (!key.startsWith(prefix)) throw invalid(key, 'it is none of the keys that were asked for')
      if (name === '') continue
      const isFolder = name.endsWith('/')
      const path = o.plan.add(isFolder ? 'directory' : 'file', name, size)
      if (!isFolder) found.push({ key, path, etag, size })
    }
    if (page.next === '') break
    if (seen.has(page.next)) {
      throw new ServeError('ARTIFACT_UNAVAILABLE', `'${o.shown}': the list of keys does not end`)
    }
    seen.add(page.next)
    token = page.next
  }
  if (found.length > 0) return found
  throw new ServeError(
    'ARTIFACT_NOT_FOUND',
    `'${o.shown}' has no objects, want a model's directory`,
  )
}

/** What tells this state of a listing from others. */
export function digestListing(objects: readonly S3Object[]): string {
  const hash = createHash('sha256')
  for (const { path, etag, size } of objects)
    for (const part of [path, etag, String(size)]) addText(hash, part)
  return hash.digest('hex')
}

async function readPage(s3: S3Client, prefix: string, token: string): Promise<Page> {
  const answer = await s3.list({
    ...(token !== '' && { 'continuation-token': token }),
    'encoding-type': 'url',
    'list-type': '2',
    prefix,
  })
  if (answer.status !== 200) throw await s3.refused(answer)
  const xml = await s3.text(answer)
  if (!xml.trimEnd().endsWith('</ListBucketResult>')) throw notWhole(answer.url)
  const next = readTag(xml, 'NextContinuationToken')
  if (readTag(xml, 'IsTruncated') === 'true' && next === '') throw notWhole(answer.url)
  return { objects: readElements(xml, 'Contents').map((text) => toObject(xml, text)), next }
}

function toObject(xml: string, text: string): Page['objects'][number] {
  const size = readTag(text, 'Size')
  if (!/^\d{1,15}$/.test(size)) throw invalid(readTag(text, 'Key'), `its size is "${size}"`)
  return { key: toKey(xml, readTag(text, 'Key')), etag: readTag(text, 'ETag'), size: Number(size) }
}

/** Servers that do not know the encoding that was asked for do not name it either. */
function toKey(xml: string, text: string): string {
  if (readTag(xml, 'EncodingType') !== 'url') return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw invalid(text, 'it is no percent-encoded key')
  }
}

function notWhole(url: URL): TransientFailure {
  const text = `'${url.protocol}//${url.host}${url.pathname}' answered with half a list of keys`
  return new TransientFailure(new ServeError('ARTIFACT_UNAVAILABLE', text))
}
