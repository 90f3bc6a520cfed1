import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { ServeError } from '@tutti/errors'
import { AwsV4Signer } from 'aws4fetch'
import type { FetchContext } from './fetch-options.ts'
import { type HttpAnswer, HttpClient, type HttpHeaders, toStatusFailure } from './http-get.ts'
import { readElements, readTag } from './s3-xml.ts'
import { showUri } from './source-uri.ts'
import { invalid } from './tree-plan.ts'

/** An object as a bucket lists it. */
export interface S3Object {
  readonly key: string
  readonly etag: string
  readonly sizeBytes: number
}

/** Of a listing. */
interface Page {
  readonly xml: string
  /** Whether its keys are percent-encoded. */
  readonly isEncoded: boolean
}

const DEFAULT_REGION = 'us-east-1'
/** A page has up to 1000 keys; a server without an end to its list would hold us for ever. */
const MAX_PAGES = 1000
/** Above the models of a repository; a wrong address may have millions. */
const MAX_FOLDERS = 100_000
/** Above a page of 1000 keys of 1024 bytes each, percent-encoded. */
const MAX_TEXT = 16 * 2 ** 20
/** Every request here has an empty body. */
const EMPTY_SHA256 = createHash('sha256').digest('hex')
/** S3's codes for credentials that it does not take, also with another status than 403. */
const DENIED = /^(ExpiredToken|InvalidToken|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied)$/

/** Reads a bucket. Requests are signed if there are credentials. */
export class S3Bucket {
  readonly client: HttpClient
  readonly #context: FetchContext
  readonly #base: URL

  constructor(bucket: string, context: FetchContext) {
    this.client = new HttpClient(context)
    this.#context = context
    this.#base = toBase(bucket, context.credentials)
  }

  /** Lists the objects below a prefix, page by page. */
  async *list(prefix: string): AsyncGenerator<readonly S3Object[]> {
    for await (const { xml, isEncoded } of this.#pages(prefix)) {
      yield readElements(xml, 'Contents').map((text) => toObject(text, isEncoded))
    }
  }

  /**
   * The names of the folders in a prefix: what stands before the next `/` of each key below it.
   *
   * @throws ServeError ARTIFACT_TOO_LARGE
   */
  async folders(prefix: string): Promise<ReadonlySet<string>> {
    const names = new Set<string>()
    for await (const { xml, isEncoded } of this.#pages(prefix, 'delimiter=%2F&')) {
      for (const part of readElements(xml, 'CommonPrefixes')) {
        const folder = decodeKey(readTag(part, 'Prefix'), isEncoded)
        if (!folder.startsWith(prefix)) throw invalid(folder, 'it was not asked for')
        names.add(folder.slice(prefix.length).replace(/\/$/, ''))
      }
      if (names.size > MAX_FOLDERS) throw tooMany(`${MAX_FOLDERS} folders`)
    }
    return names
  }

  object(key: string, headers: HttpHeaders): Promise<HttpAnswer> {
    const url = new URL(this.#base)
    url.pathname += key.split('/').map(encode).join('/')
    return this.#get(url, headers)
  }

  /** Converts a response without what was asked for; its body says more. */
  async refused(answer: HttpAnswer): Promise<ServeError> {
    const text = await this.#text(answer).catch(() => '')
    const code = readTag(text, 'Code')
    const region = answer.headers['x-amz-bucket-region']
    const where = region === undefined ? '' : `; the bucket is in the region ${String(region)}`
    const parts = [code, readTag(text, 'Message')].filter((part) => part !== '')
    const failure = toStatusFailure(answer, `${parts.join(': ')}${where}`)
    return DENIED.test(code) ? new ServeError('ARTIFACT_DENIED', failure.message) : failure
  }

  async *#pages(prefix: string, delimiter = ''): AsyncGenerator<Page> {
    let token = ''
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const xml = await this.#page(prefix, token, delimiter)
      // A server that does not know the encoding does not name it either.
      yield { xml, isEncoded: readTag(xml, 'EncodingType') === 'url' }
      token = readTag(xml, 'NextContinuationToken')
      if (token === '') return
    }
    throw tooMany(`${MAX_PAGES} pages of keys`)
  }

  async #page(prefix: string, token: string, delimiter: string): Promise<string> {
    const url = new URL(this.#base)
    const continuation = token === '' ? '' : `continuation-token=${encode(token)}&`
    url.search = `${continuation}${delimiter}encoding-type=url&list-type=2&prefix=${encode(prefix)}`
    const answer = await this.#get(url)
    if (answer.status !== 200) throw await this.refused(answer)
    const xml = await this.#text(answer)
    const next = readTag(xml, 'NextContinuationToken')
    // A list that leads to itself would never end.
    const isCut = readTag(xml, 'IsTruncated') === 'true' && (next === '' || next === token)
    if (xml.trimEnd().endsWith('</ListBucketResult>') && !isCut) return xml
    const text = `'${showUri(url)}' answered with half a list of keys`
    throw new ServeError('ARTIFACT_UNAVAILABLE', text)
  }

  async #get(url: URL, headers: HttpHeaders = {}): Promise<HttpAnswer> {
    const { credentials, clock } = this.#context
    const { aws, awsRegion = DEFAULT_REGION } = credentials
    if (aws === undefined) return await this.client.get(url, headers)
    const sessionToken = aws.sessionToken?.reveal()
    const signer = new AwsV4Signer({
      url: url.href,
      headers: { ...headers, 'x-amz-content-sha256': EMPTY_SHA256 },
      accessKeyId: aws.accessKeyId,
      secretAccessKey: aws.secretAccessKey.reveal(),
      ...(sessionToken !== undefined && { sessionToken }),
      service: 's3',
      region: awsRegion,
      datetime: new Date(clock.epochMs()).toISOString().replaceAll(/[:-]|\.\d{3}/g, ''),
    })
    const signed = await signer.sign()
    return await this.client.get(url, Object.fromEntries(signed.headers))
  }

  async #text({ url, body }: HttpAnswer): Promise<string> {
    let text = ''
    try {
      for await (const piece of body.setEncoding('utf8') as AsyncIterable<string>) {
        text += piece
        if (text.length > MAX_TEXT) {
          const problem = `answered more than ${MAX_TEXT} characters, want a list of keys`
          throw new ServeError('ARTIFACT_UNAVAILABLE', `'${showUri(url)}' ${problem}`)
        }
      }
      return text
    } catch (error) {
      throw this.client.toFailure(url, error)
    }
  }
}

/**
 * The URL where a bucket's keys begin. With AWS_ENDPOINT_URL the bucket is the first part of the path, unless the host's name begins
 * with it; without, it is part of the host's name at AWS, where certificates allow that.
 */
export function toBase(
  bucket: string,
  { awsEndpoint, awsRegion = DEFAULT_REGION }: FetchContext['credentials'],
): URL {
  if (awsEndpoint === undefined) {
    const host = `s3.${awsRegion}.amazonaws.com`
    return new URL(
      bucket.includes('.') ? `https://${host}/${bucket}/` : `https://${bucket}.${host}/`,
    )
  }
  const base = new URL(awsEndpoint)
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  const isInHost = isIP(base.hostname) === 0 && base.hostname.startsWith(`${bucket}.`)
  if (!isInHost) base.pathname += `${bucket}/`
  return base
}

function tooMany(most: string): ServeError {
  return new ServeError('ARTIFACT_TOO_LARGE', `more than ${most}, want at most that`)
}

/** As S3 signs it: everything but letters, digits and `-_.~`. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function toObject(xml: string, isEncoded: boolean): S3Object {
  const text = readTag(xml, 'Key')
  const size = readTag(xml, 'Size')
  if (!/^\d{1,15}$/.test(size)) throw invalid(text, `its size is "${size}"`)
  const key = decodeKey(text, isEncoded)
  return { key, etag: readTag(xml, 'ETag'), sizeBytes: Number(size) }
}

function decodeKey(text: string, isEncoded: boolean): string {
  try {
    return isEncoded ? decodeURIComponent(text.replaceAll('+', ' ')) : text
  } catch {
    throw invalid(text, 'it is no percent-encoded key')
  }
}
