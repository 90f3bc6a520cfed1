import type { IncomingHttpHeaders } from 'node:http'
import { ServeError } from '@tutti/errors'
import type { FetchContext } from './fetch-options.ts'
import { HttpClient, type HttpHeaders, type StreamedAnswer, toStatusFailure } from './http-get.ts'
import { showUri } from './source-uri.ts'
import { invalidArtifact } from './tree-plan.ts'

/** An object as a bucket lists it. */
export interface StoredObject {
  readonly key: string
  /** Entity tag or generation of the object's present state; '' if the server gives none. */
  readonly tag: string
  readonly sizeBytes: number
}

/** A page of a list. */
export interface BucketPage {
  readonly objects: readonly StoredObject[]
  /** Beginnings of keys, up to and including the next `/`. */
  readonly folders: readonly string[]
  /** Token of the next page; '' after the last. */
  readonly next: string
}

export interface BucketRequest {
  readonly url: URL
  readonly headers?: HttpHeaders
}

/** A cloud's own part of reading a bucket: addresses, signatures, and the form of its answers. */
export interface BucketApi {
  /**
   * Builds the request for a page of keys.
   *
   * @param o.token - '' for the first page.
   * @param o.isFolders - whether keys are listed only up to the next `/`.
   */
  page(o: {
    readonly prefix: string
    readonly token: string
    readonly isFolders: boolean
  }): BucketRequest
  /** Pattern of the beginning of a list, which tells half a list from another document. */
  readonly start: RegExp
  /**
   * Parses a page of keys.
   *
   * @returns undefined if the text is not a whole page.
   * @throws ServeError ARTIFACT_INVALID for an object that cannot be fetched.
   */
  toPage(text: string): BucketPage | undefined
  /** Builds the request for an object in the state that was listed. */
  object(o: StoredObject): BucketRequest
  /** Reads an object's tag from the headers of its response; '' if they have none. */
  tagOf(headers: IncomingHttpHeaders): string
  /** Gives the headers of a request, with a signature or a token if there are credentials. */
  sign(request: BucketRequest): Promise<HttpHeaders>
  /** Describes, for people, a response that refuses a request. @param text - its body. */
  toRefusal(
    text: string,
    headers: IncomingHttpHeaders,
  ): {
    readonly detail: string
    /** Whether the credentials are at fault, also with another status than 401 and 403. */
    readonly isDenied: boolean
  }
}

/** A page has up to 1000 keys, or 5000; a server without an end to its list would hold us for ever. */
const MAX_PAGES = 1000
/** Above the models of a repository; a wrong address may have millions. */
const MAX_FOLDERS = 100_000
const EXCERPT = 60

/** Lists a bucket's keys and reads its objects over HTTP. */
export class Bucket {
  readonly client: HttpClient
  readonly api: BucketApi
  #isAnonymous = false

  constructor(api: BucketApi, context: FetchContext) {
    this.api = api
    this.client = new HttpClient(context)
  }

  /** Lists the objects below a prefix, page by page. */
  async *list(prefix: string): AsyncGenerator<readonly StoredObject[]> {
    for await (const { objects } of this.#pages(prefix, false)) yield objects
  }

  /**
   * Lists the names of the folders directly below a prefix.
   *
   * @throws ServeError ARTIFACT_TOO_LARGE for more than 100,000 folders or 1000 pages.
   */
  async folders(prefix: string): Promise<ReadonlySet<string>> {
    const names = new Set<string>()
    for await (const { folders } of this.#pages(prefix, true)) {
      for (const folder of folders) {
        if (!folder.startsWith(prefix)) throw invalidArtifact(folder, 'it was not asked for')
        names.add(folder.slice(prefix.length).replace(/\/$/, ''))
      }
      if (names.size > MAX_FOLDERS) throw tooMany(`${MAX_FOLDERS} folders`)
    }
    return names
  }

  async object(object: StoredObject): Promise<StreamedAnswer> {
    return await this.#get(this.api.object(object))
  }

  /** Converts a response that refuses a request to an error; reads the body for its detail. */
  async refused(answer: StreamedAnswer): Promise<ServeError> {
    const text = await this.client.text(answer, 'a list of keys').catch(() => '')
    const { detail, isDenied } = this.api.toRefusal(text, answer.headers)
    const failure = toStatusFailure(answer, detail)
    if (!isDenied && failure.reason !== 'ARTIFACT_DENIED') return failure
    const how = this.#isAnonymous ? ' (asked without credentials, none were found)' : ''
    return new ServeError('ARTIFACT_DENIED', `${failure.message}${how}`)
  }

  async *#pages(prefix: string, isFolders: boolean): AsyncGenerator<BucketPage> {
    let token = ''
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const page = await this.#page(prefix, token, isFolders)
      yield page
      token = page.next
      if (token === '') return
    }
    throw tooMany(`${MAX_PAGES} pages of keys`)
  }

  async #page(prefix: string, token: string, isFolders: boolean): Promise<BucketPage> {
    const request = this.api.page({ prefix, token, isFolders })
    const answer = await this.#get(request)
    if (answer.status !== 200) throw await this.refused(answer)
    const text = await this.client.text(answer, 'a list of keys')
    const page = this.api.toPage(text)
    // A list that leads to itself would never end.
    if (page !== undefined && (page.next === '' || page.next !== token)) return page
    const type = answer.headers['content-type'] ?? 'nothing'
    const begin = JSON.stringify(text.slice(0, EXCERPT))
    const problem = this.api.start.test(text)
      ? 'half a list of keys'
      : `${type} that begins ${begin}, want a list of keys`
    throw new ServeError(
      'ARTIFACT_UNAVAILABLE',
      `'${showUri(request.url)}' answered with ${problem}`,
    )
  }

  async #get(request: BucketRequest): Promise<StreamedAnswer> {
    const headers = await this.api.sign(request)
    this.#isAnonymous = headers['authorization'] === undefined
    return await this.client.get(request.url, headers)
  }
}

/** Percent-encodes everything but letters, digits and `-_.~`, as signatures want it. */
export function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** Parses the size of an object, in bytes. @param key - for the message. @throws ServeError ARTIFACT_INVALID */
export function parseSize(key: string, size: string): number {
  if (/^\d{1,15}$/.test(size)) return Number(size)
  throw invalidArtifact(key, `its size is "${size}"`)
}

function tooMany(most: string): ServeError {
  return new ServeError('ARTIFACT_TOO_LARGE', `more than ${most}, which is the limit`)
}
