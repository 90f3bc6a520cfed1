import { ServeError } from '@tutti/errors'

/** A model repository in a bucket of S3. */
export interface RepositoryUri {
  /** As it was written. */
  readonly uri: string
  readonly bucket: string
  /** '' or ends in `/`: what lies below it is the repository. */
  readonly prefix: string
  /** Of a server that is not AWS. */
  readonly endpoint?: URL
}

const REMOTE = /^(s3|gs|as):\/\//
/** As Triton reads it: a port alone means http. */
const S3 =
  /^s3:\/\/(?:(?:(?<scheme>https?):\/\/(?<named>[^/@?#]+)|(?<plain>[^/:@?#]+:\d+))\/)?(?<bucket>[^/:]+)(?:\/(?<path>.*))?$/
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/

/** Whether a repository is no folder of this machine. */
export function isRemote(path: string): boolean {
  return REMOTE.test(path)
}

/**
 * Reads a repository's address in Triton's forms: `s3://BUCKET/PREFIX`, `s3://HOST:PORT/BUCKET/PREFIX`,
 * `s3://https://HOST:PORT/BUCKET/PREFIX`.
 *
 * @throws ServeError FLAG_INVALID that names what came and what was wanted.
 */
export function parseRepositoryUri(uri: string): RepositoryUri {
  const { scheme = 'http', named, plain, bucket = '', path = '' } = S3.exec(uri)?.groups ?? {}
  const host = named ?? plain
  const endpoint = host === undefined ? undefined : URL.parse(`${scheme}://${host}`)
  if (!BUCKET.test(bucket) || endpoint === null) throw refusal(uri)
  const prefix = path.replaceAll(/([^/]+)\/*/g, '$1/').replace(/^\/+/, '')
  return { uri, bucket, prefix, ...(endpoint !== undefined && { endpoint }) }
}

function refusal(uri: string): ServeError {
  const [, kind = ''] = REMOTE.exec(uri) ?? []
  const problem = kind === 's3' ? '' : `${kind}:// is not read here, `
  const want = 'want a folder or s3://[[https://]HOST:PORT/]BUCKET/PREFIX'
  return new ServeError('FLAG_INVALID', `--model-repository: "${uri}": ${problem}${want}`, {
    details: { field: '--model-repository' },
  })
}
