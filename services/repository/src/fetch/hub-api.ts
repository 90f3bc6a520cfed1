import { ServeError } from '@tutti/errors'
import { membersOf, parseMembers } from '../json-members.ts'
import { encode } from './bucket.ts'
import type { FetchContext } from './fetch-options.ts'
import { followRedirects } from './follow-redirects.ts'
import {
  type HttpClient,
  type HttpHeaders,
  type StreamedAnswer,
  toStatusFailure,
} from './http-get.ts'
import type { KnownFile } from './known-file.ts'
import { type HubAddress, showUri } from './source-uri.ts'
import { invalidArtifact, show } from './tree-plan.ts'

/** A file of a repository, as a Hub lists it. */
export interface HubFile extends Pick<KnownFile, 'sizeBytes' | 'digest'> {
  /** In the repository. */
  readonly path: string
}

const ENDPOINT = new URL('https://huggingface.co')
/** A page has up to 1000 files; a server without an end to its list would hold us for ever. */
const MAX_PAGES = 1000
const COMMIT = /^[0-9a-f]{40}$/
/** A link of the header `link` with its parameters, whose values may be in quotes. */
const LINK =
  /<(?<address>[^>]*)>(?<parameters>(?:\s*;\s*[^\s=;,"]+(?:\s*=\s*(?:"[^"]*"|[^\s;,"]+))?)*)/g
/** Parameters of the link to the next page; a value in quotes may name several relations. */
const NEXT = /;\s*rel\s*=\s*(?:next(?![^\s;])|"(?:[^"]*\s)?next(?:\s[^"]*)?")/i

/** Asks a Hub for what a repository holds: its commits, lists of files, and files. It speaks as that of Hugging Face. */
export class HubApi {
  readonly #base: string
  readonly #at: HubAddress
  readonly #token: string | undefined

  constructor(at: HubAddress, { hub, authorization }: FetchContext['credentials']) {
    this.#at = at
    this.#base = (hub?.endpoint ?? ENDPOINT).href.replace(/\/$/, '')
    this.#token =
      hub?.token === undefined ? authorization?.reveal() : `Bearer ${hub.token.reveal()}`
  }

  /** Finds the commit that the address names. */
  async commit(client: HttpClient): Promise<string> {
    const { repository, revision } = this.#at
    if (COMMIT.test(revision)) return revision
    const url = new URL(`${this.#base}/api/models/${repository}/revision/${encode(revision)}`)
    const { text } = await this.#ask(client, url)
    const commit = String(parseMembers(text)?.['sha'])
    if (COMMIT.test(commit)) return commit
    throw new ServeError('ARTIFACT_UNAVAILABLE', `'${showUri(url)}' answered without a commit`)
  }

  /**
   * Lists the files of a folder, page by page.
   *
   * @param o.isDeep - whether files of folders within it are listed.
   */
  async *files(
    client: HttpClient,
    o: { readonly commit: string; readonly folder: string; readonly isDeep: boolean },
  ): AsyncGenerator<readonly HubFile[]> {
    const folder = o.folder === '' ? '' : `/${encodePath(o.folder)}`
    const url = new URL(`${this.#base}/api/models/${this.#at.repository}/tree/${o.commit}${folder}`)
    let cursor: string | undefined = ''
    const seen = new Set([cursor])
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      url.search = `recursive=${o.isDeep}${cursor === '' ? '' : `&cursor=${encode(cursor)}`}`
      const { text, headers } = await this.#ask(client, url)
      const files = toHubFiles(text)
      if (files === undefined) {
        const problem = `'${showUri(url)}' answered without a list of files`
        throw new ServeError('ARTIFACT_UNAVAILABLE', problem)
      }
      yield files
      const next = nextPage(headers['link'], url)
      if (next === undefined) return
      cursor = next.searchParams.get('cursor') ?? ''
      // To end here would take the part of a model for the whole.
      if (seen.has(cursor)) {
        const problem = `'${showUri(url)}' names a next page without a cursor of its own`
        throw new ServeError('ARTIFACT_UNAVAILABLE', problem)
      }
      seen.add(cursor)
    }
    throw new ServeError('ARTIFACT_TOO_LARGE', `more than ${MAX_PAGES} pages of files`)
  }

  /** Sends the request for a file. Most are on other servers, to which the Hub leads. */
  async file(
    client: HttpClient,
    { path, commit }: { readonly path: string; readonly commit: string },
    headers: HttpHeaders,
  ): Promise<StreamedAnswer> {
    const { repository } = this.#at
    return await this.#get(
      client,
      new URL(`${this.#base}/${repository}/resolve/${commit}/${encodePath(path)}`),
      headers,
    )
  }

  /** Converts a response that refuses a request to an error, with the words of the Hub. */
  refused(answer: StreamedAnswer): ServeError {
    const message = answer.headers['x-error-message']
    const failure = toStatusFailure(answer, typeof message === 'string' ? show(message) : '')
    if (failure.reason !== 'ARTIFACT_DENIED' || this.#token !== undefined) return failure
    const how = ' (asked without a token, want HF_TOKEN if the repository is private or gated)'
    return new ServeError('ARTIFACT_DENIED', `${failure.message}${how}`)
  }

  async #ask(client: HttpClient, url: URL) {
    const answer = await this.#get(client, url, {})
    if (answer.status !== 200) throw this.refused(answer)
    return { text: await client.text(answer, 'a list of files'), headers: answer.headers }
  }

  async #get(client: HttpClient, url: URL, headers: HttpHeaders): Promise<StreamedAnswer> {
    const token = this.#token
    return await followRedirects(client, url, {
      headers,
      ...(token !== undefined && { authorization: token }),
    })
  }
}

function encodePath(path: string): string {
  return path.split('/').map(encode).join('/')
}

/**
 * Reads the link to the next page (RFC 8288). Only its cursor is used: the address may be another server's.
 *
 * @throws ServeError ARTIFACT_UNAVAILABLE if the link is no address.
 */
function nextPage(header: string | string[] | undefined, page: URL): URL | undefined {
  const links = [...String(header ?? '').matchAll(LINK)]
  const next = links.find(({ groups }) => NEXT.test(groups?.['parameters'] ?? ''))
  if (next === undefined) return undefined
  const url = URL.parse(next.groups?.['address'] ?? '', page.href)
  if (url !== null) return url
  throw new ServeError('ARTIFACT_UNAVAILABLE', `'${showUri(page)}' names no address of a next page`)
}

/**
 * Reads the files of a page; folders are left out.
 *
 * @returns undefined if the text is no page.
 * @throws ServeError ARTIFACT_INVALID for a file without size or digest.
 */
export function toHubFiles(text: string): readonly HubFile[] | undefined {
  return listIn(text)?.map(membersOf).flatMap(toFile)
}

function listIn(text: string): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function toFile(entry: Readonly<Record<string, unknown>>): readonly HubFile[] {
  if (entry['type'] !== 'file') return []
  const path = String(entry['path'])
  const lfs = membersOf(entry['lfs'])
  const isLarge = entry['lfs'] !== undefined
  const hex = String(isLarge ? lfs['oid'] : entry['oid'])
  const size = isLarge ? lfs['size'] : entry['size']
  if (!(isLarge ? /^[0-9a-f]{64}$/ : /^[0-9a-f]{40}$/).test(hex)) {
    throw invalidArtifact(path, 'it is listed without a digest')
  }
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw invalidArtifact(path, 'it is listed without a size')
  }
  return [{ path, sizeBytes: size, digest: { kind: isLarge ? 'sha256' : 'git', hex } }]
}
