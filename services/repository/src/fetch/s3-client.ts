import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { ServeError } from '@tutti/errors'
import { AwsV4Signer } from 'aws4fetch'
import { TransientFailure } from './attempts.ts'
import type { FetchContext } from './fetch-options.ts'
import type { HttpAnswer, HttpClient, HttpHeaders } from './http-get.ts'
import { toStatusFailure } from './http-status.ts'
import { readTag } from './s3-xml.ts'
import { showUri } from './source-uri.ts'

const DEFAULT_REGION = 'us-east-1'
/** A page of 1000 keys of 1024 bytes each, percent-encoded, is less. */
const MAX_TEXT_BYTES = 16 * 2 ** 20
/** Of nothing: the body of every request here. */
const EMPTY_SHA256 = createHash('sha256').digest('hex')
/** Codes of S3 that say, with another status than 403, that the credentials will not do. */
const DENIED = /^(ExpiredToken|InvalidToken|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied)$/

/** Reads of one bucket, signed where there are credentials. */
export class S3Client {
  readonly #context: FetchContext
  readonly #client: HttpClient
  readonly #base: URL

  constructor(bucket: string, o: { readonly context: FetchContext; readonly client: HttpClient }) {
    this.#context = o.context
    this.#client = o.client
    this.#base = toBase(bucket, o.context.credentials)
  }

  /** @param query - by name; values as they are. */
  list(query: Readonly<Record<string, string>>): Promise<HttpAnswer> {
    const pairs = Object.entries(query).map(([name, value]) => `${name}=${encode(value)}`)
    const url = new URL(this.#base)
    url.search = pairs.join('&')
    return this.#get(url, {})
  }

  object(key: string, headers: HttpHeaders): Promise<HttpAnswer> {
    const url = new URL(this.#base)
    url.pathname += key.split('/').map(encode).join('/')
    return this.#get(url, headers)
  }

  /** @throws TransientFailure */
  async text(answer: HttpAnswer): Promise<string> {
    const pieces: Uint8Array[] = []
    let size = 0
    try {
      for await (const piece of answer.body) {
        pieces.push(piece)
        size += piece.byteLength
        if (size > MAX_TEXT_BYTES) throw tooLong(answer.url)
      }
    } catch (error) {
      throw this.#client.toFailure(answer.url, error)
    }
    return Buffer.concat(pieces).toString('utf8')
  }

  /** What an answer amounts to that does not bring what was asked for: S3 says more in its body. */
  async refused(answer: HttpAnswer): Promise<ServeError | TransientFailure> {
    const text = await this.text(answer).catch(() => '')
    const code = readTag(text, 'Code')
    const region = answer.headers['x-amz-bucket-region']
    const where = region === undefined ? '' : `; the bucket is in the region ${String(region)}`
    const said = [code, readTag(text, 'Message')].filter((part) => part !== '').join(': ')
    const failure = toStatusFailure(answer, `${said}${where}`)
    if (!DENIED.test(code) || failure instanceof TransientFailure) return failure
    return new ServeError('ARTIFACT_DENIED', failure.message)
  }

  async #get(url: URL, headers: HttpHeaders): Promise<HttpAnswer> {
    return this.#client.get(url, await this.#sign(url, headers))
  }

  async #sign(url: URL, headers: HttpHeaders): Promise<HttpHeaders> {
    const { credentials, clock } = this.#context
    const { aws, awsRegion = DEFAULT_REGION } = credentials
    if (aws === undefined) return headers
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
    return Object.fromEntries(signed.headers)
  }
}

/**
 * Where a bucket's keys begin. With AWS_ENDPOINT_URL the bucket is the first part of the path, unless the host's name begins with
 * it; without, it is part of the host's name at AWS, where certificates allow that.
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
  const isPart = isIP(base.hostname) === 0 && base.hostname.startsWith(`${bucket}.`)
  if (!isPart) base.pathname += `${bucket}/`
  return base
}

/** As S3 signs it: everything but letters, digits and `-_.~`. */
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function tooLong(url: URL): ServeError {
  return new ServeError(
    'ARTIFACT_UNAVAILABLE',
    `'${showUri(url)}' answered more than ${MAX_TEXT_BYTES} bytes, want a list of keys`,
  )
}
