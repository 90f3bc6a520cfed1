import { ServeError } from '@tutti/errors'

/** Source from which a model is fetched. */
export type SourceUri =
  | { readonly kind: 'http'; readonly url: URL }
  /** `prefix` is '' or ends in `/`: what lies below it is the model's directory. */
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string }

const WANTED = 'http(s)://HOST/PATH of a tar archive, or s3://BUCKET/PREFIX'
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/

/**
 * Parses the address of a model: an archive over http(s), or a prefix in a bucket of S3.
 *
 * @throws ServeError FLAG_INVALID that shows the address without its secrets, and the wanted form.
 */
export function parseSourceUri(text: string): SourceUri {
  const s3 = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(text)
  if (s3 !== null) return toS3(text, s3[1] ?? '', s3[2] ?? '')
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) throw refusal(text)
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') {
    throw refusal(text, 'user and password come from the secret, never from the address')
  }
  url.hash = ''
  return { kind: 'http', url }
}

function toS3(text: string, bucket: string, path: string): SourceUri {
  if (!BUCKET.test(bucket)) throw refusal(text, `"${bucket}" is no name of a bucket`)
  const prefix = path === '' || path.endsWith('/') ? path : `${path}/`
  return { kind: 's3', bucket, prefix }
}

/** Shows an address to people: leaves out user, password and query, which may hold a signature. */
export function showUri(uri: URL | string): string {
  const text = String(uri)
  if (!URL.canParse(text)) return text.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//')
  const url = new URL(text)
  return `${url.protocol}//${url.host}${url.pathname}`
}

function refusal(text: string, problem = `want ${WANTED}`): ServeError {
  return new ServeError('FLAG_INVALID', `--uri: "${showUri(text)}": ${problem}`, {
    details: { field: '--uri' },
  })
}
