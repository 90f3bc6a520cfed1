import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { AwsV4Signer } from 'aws4fetch'
import {
  type BucketApi,
  type BucketPage,
  type BucketRequest,
  encode,
  parseSize,
  type StoredObject,
} from './bucket.ts'
import { readElements, readTag } from './bucket-xml.ts'
import type { FetchCredentials } from './credentials.ts'
import type { FetchContext } from './fetch-options.ts'
import type { HttpHeaders } from './http-get.ts'
import { invalidArtifact } from './tree-plan.ts'

const DEFAULT_REGION = 'us-east-1'
/** Digest of the empty body, which every request here has. */
const EMPTY_SHA256 = createHash('sha256').digest('hex')
/** S3's codes for credentials that it does not take, also with another status than 403. */
const DENIED = /^(ExpiredToken|InvalidToken|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied)$/

interface S3Options extends Pick<FetchContext, 'credentials' | 'clock'> {
  /** Gives the keys of each request, which may change; those of the credentials if absent. */
  readonly keys?: () => Promise<FetchCredentials['aws']>
}

/** Builds the interface to a bucket of S3. Requests are signed if there are keys. */
export function s3Api(bucket: string, context: S3Options): BucketApi {
  const base = toBase(bucket, context.credentials)
  return {
    start: /^\W*(<\?xml[^>]*>\s*)?<ListBucketResult\b/,
    page: ({ prefix, token, isFolders }) => {
      const url = new URL(base)
      const continuation = token === '' ? '' : `continuation-token=${encode(token)}&`
      const delimiter = isFolders ? 'delimiter=%2F&' : ''
      url.search = `${continuation}${delimiter}encoding-type=url&list-type=2&prefix=${encode(prefix)}`
      return { url }
    },
    toPage,
    object: ({ key, tag }) => {
      const url = new URL(base)
      url.pathname += key.split('/').map(encode).join('/')
      return tag === '' ? { url } : { url, headers: { 'if-match': tag } }
    },
    tagOf: ({ etag = '' }) => etag,
    sign: (request) => sign(request, context),
    toRefusal: (text, headers) => {
      const code = readTag(text, 'Code')
      const region = headers['x-amz-bucket-region']
      const where = region === undefined ? '' : `; the bucket is in the region ${String(region)}`
      const parts = [code, readTag(text, 'Message')].filter((part) => part !== '')
      return { detail: `${parts.join(': ')}${where}`, isDenied: DENIED.test(code) }
    },
  }
}

function toPage(xml: string): BucketPage | undefined {
  const next = readTag(xml, 'NextContinuationToken')
  const isCut = readTag(xml, 'IsTruncated') === 'true' && next === ''
  if (!xml.trimEnd().endsWith('</ListBucketResult>') || isCut) return undefined
  // A server that does not know the encoding does not name it either.
  const isEncoded = readTag(xml, 'EncodingType') === 'url'
  return {
    objects: readElements(xml, 'Contents').map((text) => toObject(text, isEncoded)),
    folders: readElements(xml, 'CommonPrefixes').map((text) =>
      decodeKey(readTag(text, 'Prefix'), isEncoded),
    ),
    next,
  }
}

async function sign(
  { url, headers = {} }: BucketRequest,
  { credentials, clock, keys }: S3Options,
): Promise<HttpHeaders> {
  const { awsRegion = DEFAULT_REGION } = credentials
  const aws = keys === undefined ? credentials.aws : await keys()
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

/**
 * Builds the URL below which a bucket's keys lie. With an endpoint, the bucket is the first part of the path, unless the host's
 * name begins with the bucket. At AWS, the bucket begins the host's name; AWS's certificates exclude buckets with dots, so these
 * are in the path.
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

function toObject(xml: string, isEncoded: boolean): StoredObject {
  const text = readTag(xml, 'Key')
  const key = decodeKey(text, isEncoded)
  return { key, tag: readTag(xml, 'ETag'), sizeBytes: parseSize(text, readTag(xml, 'Size')) }
}

function decodeKey(text: string, isEncoded: boolean): string {
  try {
    return isEncoded ? decodeURIComponent(text.replaceAll('+', ' ')) : text
  } catch {
    throw invalidArtifact(text, 'it is no percent-encoded key')
  }
}
