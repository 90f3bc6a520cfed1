import { ServeError } from '@tutti/errors'

/** A model repository in a bucket. */
export type RepositoryUri = {
  /** Address as it was written. */
  readonly uri: string
  /** Name of the bucket; in Azure, of the container. */
  readonly bucket: string
  /** '' or ends in `/`: what lies below it is the repository. */
  readonly prefix: string
} & (
  | {
      readonly kind: 's3'
      /** Endpoint of a server that is not AWS. */
      readonly endpoint?: URL
    }
  | { readonly kind: 'gs' }
  | {
      readonly kind: 'as'
      /** The account, unless the credentials name one. */
      readonly account: string
    }
)

/** A place in a bucket of Google, or in a container of Azure. */
export type CloudUri = Extract<RepositoryUri, { readonly kind: 'gs' | 'as' }>

const REMOTE = /^(s3|gs|as):\/\//
/** Pattern of an s3 address as Triton reads it: a port alone means http. */
const S3 =
  /^s3:\/\/(?:(?:(?<scheme>https?):\/\/(?<named>[^/@?#]+)|(?<plain>[^/:@?#]+:\d+))\/)?(?<bucket>[^/:]+)(?:\/(?<path>.*))?$/
const GS = /^gs:\/\/(?<bucket>[^/]+)(?:\/(?<path>.*))?$/
const AS =
  /^as:\/\/(?<account>[^/@]+?)(?:\.blob\.core\.windows\.net)?\/(?<bucket>[^/]+)(?:\/(?<path>[^?]*))?$/
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
/** Names with dots may be longer. */
const GS_BUCKET = /^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/
const CONTAINER = /^(\$root|\$web|[a-z0-9][a-z0-9-]{2,62})$/

/** Tells whether a repository is in a bucket: its path begins with s3://, gs:// or as://. */
export function isRemote(path: string): boolean {
  return REMOTE.test(path)
}

/**
 * Reads a repository's address in Triton's forms: `s3://BUCKET/PREFIX`, `s3://HOST:PORT/BUCKET/PREFIX`,
 * `s3://https://HOST:PORT/BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `as://ACCOUNT/CONTAINER/PREFIX`,
 * `as://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX`.
 *
 * @throws ServeError FLAG_INVALID that names what came and what was wanted.
 */
export function parseRepositoryUri(uri: string): RepositoryUri {
  const cloud = parseCloudUri(uri)
  if (cloud !== undefined) return cloud
  if (uri.startsWith('gs://')) throw refusal(uri, 'gs://BUCKET/PREFIX')
  if (!uri.startsWith('as://')) return parseS3(uri)
  throw refusal(uri, 'as://ACCOUNT/CONTAINER/PREFIX without a query')
}

/** Reads an address of Google Cloud Storage or Azure. @returns undefined if it is none. */
export function parseCloudUri(uri: string): CloudUri | undefined {
  return parseGs(uri) ?? parseAs(uri)
}

function parseS3(uri: string): RepositoryUri {
  const { scheme = 'http', named, plain, bucket = '', path } = S3.exec(uri)?.groups ?? {}
  const host = named ?? plain
  const endpoint = host === undefined ? undefined : URL.parse(`${scheme}://${host}`)
  if (!BUCKET.test(bucket) || endpoint === null) {
    throw refusal(uri, 's3://[[https://]HOST:PORT/]BUCKET/PREFIX')
  }
  const place = { uri, bucket, prefix: toPrefix(path) }
  return { kind: 's3', ...place, ...(endpoint !== undefined && { endpoint }) }
}

function parseGs(uri: string): CloudUri | undefined {
  const { bucket = '', path } = GS.exec(uri)?.groups ?? {}
  if (!GS_BUCKET.test(bucket)) return undefined
  return { kind: 'gs', uri, bucket, prefix: toPrefix(path) }
}

function parseAs(uri: string): CloudUri | undefined {
  const { account = '', bucket = '', path } = AS.exec(uri)?.groups ?? {}
  if (!CONTAINER.test(bucket)) return undefined
  return { kind: 'as', uri, account, bucket, prefix: toPrefix(path) }
}

function toPrefix(path = ''): string {
  return path.replaceAll(/([^/]+)\/*/g, '$1/').replace(/^\/+/, '')
}

/** Makes the error of an address, without user and query: passwords and signatures are not for a log. */
function refusal(uri: string, want: string): ServeError {
  const shown = uri.replace(/\?.*$/s, '?...').replace(/\/\/[^/]*@/, '//')
  const text = `--model-repository: "${shown}": want a folder or ${want}`
  return new ServeError('FLAG_INVALID', text, { details: { field: '--model-repository' } })
}
