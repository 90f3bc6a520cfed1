import { createHash, createHmac } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Answer, serveBytes, startArtifactServer } from './artifact-server.ts'

export type ScriptedS3 = Awaited<ReturnType<typeof startScriptedS3>>

export const S3_CREDENTIALS = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: 'session/token==',
} as const

/** Starts a server that speaks the part of S3 that a fetch needs, over objects that a test changes. It checks every signature. */
export async function startScriptedS3(bucket: string, o: { readonly isPublic?: boolean } = {}) {
  const objects = new Map<string, string | Uint8Array>()
  const base = `/${bucket}/`
  const s3 = {
    objects,
    /** Keys of a page; S3 has 1000. */
    pageSize: 1000,
    /** Answers that the next requests get instead. */
    faults: [] as Answer[],
    /** Keys that may not be read. */
    denied: new Set<string>(),
    /** Called before an object is served. */
    onGet: (_key: string) => {},
  }
  const answer: Answer = (request, response) => {
    const fault = s3.faults.shift()
    if (fault !== undefined) return fault(request, response)
    const url = new URL(request.url ?? '', 'http://s3')
    if (o.isPublic !== true && !isSigned(request)) {
      return refuse(response, 403, 'SignatureDoesNotMatch', 'The signature does not match.')
    }
    if (!url.pathname.startsWith(base)) return refuse(response, 404, 'NoSuchBucket', 'No bucket.')
    const key = decodeURIComponent(url.pathname.slice(base.length))
    if (key === '') return list(s3, url, response)
    s3.onGet(key)
    if (s3.denied.has(key)) return refuse(response, 403, 'AccessDenied', 'No.')
    const content = objects.get(key)
    if (content === undefined) return refuse(response, 404, 'NoSuchKey', 'No key.')
    const etag = tagOf(content)
    const { 'if-match': wanted } = request.headers
    if (wanted !== undefined && wanted !== etag) {
      return refuse(response, 412, 'PreconditionFailed', 'Changed.')
    }
    return serveBytes(Buffer.from(content), etag)(request, response)
  }
  const server = await startArtifactServer(answer)
  return Object.assign(s3, server)
}

const tagOf = (content: string | Uint8Array): string =>
  `"${createHash('md5').update(content).digest('hex')}"`

function list(
  { objects, pageSize }: Pick<ScriptedS3, 'objects' | 'pageSize'>,
  url: URL,
  response: ServerResponse,
): void {
  const prefix = url.searchParams.get('prefix') ?? ''
  const after = url.searchParams.get('continuation-token') ?? ''
  const below = [...objects.keys()].filter((key) => key.startsWith(prefix))
  const isFolders = url.searchParams.get('delimiter') === '/'
  const folders = below.map((key) => /^[^/]*\//.exec(key.slice(prefix.length))?.[0])
  const keys = (
    isFolders ? [...new Set(folders.flatMap((name) => (name ? prefix + name : [])))] : below
  ).toSorted()
  const page = keys.filter((key) => key > after).slice(0, pageSize)
  const last = page.at(-1) ?? ''
  const isTruncated = last !== (keys.at(-1) ?? '')
  const contents = page.map((key) => {
    if (isFolders) {
      return `<CommonPrefixes><Prefix>${encodeURIComponent(key)}</Prefix></CommonPrefixes>`
    }
    const content = objects.get(key) ?? ''
    const size = Buffer.byteLength(content)
    const etag = tagOf(content).replaceAll('"', '&quot;')
    return `<Contents><Key>${encodeURIComponent(key)}</Key><ETag>${etag}</ETag><Size>${size}</Size></Contents>`
  })
  const next = `<NextContinuationToken>${last}</NextContinuationToken>`
  response.writeHead(200, { 'content-type': 'application/xml' })
  response.end(
    `<?xml version="1.0"?><ListBucketResult><EncodingType>url</EncodingType><IsTruncated>${isTruncated}</IsTruncated>${contents.join('')}${isTruncated ? next : ''}</ListBucketResult>`,
  )
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' })
  response.end(`<Error><Code>${code}</Code><Message>${message}</Message></Error>`)
}

const hmac = (key: string | Buffer, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest()

const MUST_BE_SIGNED = ['host', 'x-amz-date', 'x-amz-security-token']

/** AWS Signature Version 4, made anew from what was received. */
function isSigned({ headers, method, url: path = '' }: IncomingMessage): boolean {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/
  const found = pattern.exec(headers.authorization ?? '')
  if (found === null) return false
  const [, keyId, day = '', region = '', signed = '', signature] = found
  const { accessKeyId, secretAccessKey, sessionToken } = S3_CREDENTIALS
  if (keyId !== accessKeyId || headers['x-amz-security-token'] !== sessionToken) return false
  const names = signed.split(';')
  if (!MUST_BE_SIGNED.every((name) => names.includes(name))) return false
  const [pathname = '', query = ''] = path.split('?')
  const canonical = [
    method,
    pathname,
    query.split('&').toSorted().join('&'),
    ...names.map((name) => `${name}:${String(headers[name])}`),
    '',
    signed,
    headers['x-amz-content-sha256'],
  ].join('\n')
  const digest = createHash('sha256').update(canonical).digest('hex')
  const scope = `${day}/${region}/s3/aws4_request`
  const text = `AWS4-HMAC-SHA256\n${String(headers['x-amz-date'])}\n${scope}\n${digest}`
  const key = [region, 's3', 'aws4_request'].reduce(hmac, hmac(`AWS4${secretAccessKey}`, day))
  return hmac(key, text).toString('hex') === signature
}
