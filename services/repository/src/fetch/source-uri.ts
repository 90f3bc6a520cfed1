import { ServeError } from '@tutti/errors'
import { type CloudUri, parseCloudUri } from '../repository-uri.ts'
import { type ImageAddress, parseImageAddress } from './image-address.ts'

/** Source from which a model is fetched. */
export type SourceUri =
  | { readonly kind: 'http'; readonly url: URL }
  /** `prefix` is '' or ends in `/`: what lies below it is the model's directory. */
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string }
  | CloudUri
  | HubAddress
  | ({ readonly kind: 'oci' } & ImageAddress)

/** Folder or file of a repository on a Hub that speaks as that of Hugging Face. */
export interface HubAddress {
  readonly kind: 'hf'
  /** `OWNER/NAME`. */
  readonly repository: string
  /** A branch, a tag or a commit. */
  readonly revision: string
  /** '' for the whole repository; without a slash at its ends. */
  readonly path: string
}

/** An address that is not the wanted form of its scheme. */
type Problem = string

/** Readers of addresses by scheme, with the wanted form in words. Each gets the address and what follows `SCHEME://`. */
const SCHEMES: Readonly<
  Record<
    string,
    { readonly form: string; parse(text: string, rest: string): SourceUri | Problem | undefined }
  >
> = {
  http: { form: 'http(s)://HOST/PATH of a tar archive', parse: parseHttp },
  https: { form: '', parse: parseHttp },
  s3: { form: 's3://BUCKET/PREFIX', parse: (_, rest) => parseS3(rest) },
  gs: { form: 'gs://BUCKET/PREFIX', parse: parseCloudUri },
  as: { form: 'as://ACCOUNT/CONTAINER/PREFIX', parse: parseCloudUri },
  hf: { form: 'hf://OWNER/NAME[@REVISION][/PATH]', parse: (_, rest) => parseHub(rest) },
  oci: { form: 'oci://HOST/REPOSITORY:TAG[/PATH]', parse: (_, rest) => parseOci(rest) },
}
const FORMS = Object.values(SCHEMES).flatMap(({ form }) => (form === '' ? [] : [form]))
const WANTED = `${FORMS.slice(0, -1).join(', ')}, or ${FORMS.at(-1)}`

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
/** Names of owners and repositories; they are parts of paths, so neither is `.` or `..`. */
const HUB =
  /^(?<repository>\w[\w.-]{0,95}\/\w[\w.-]{0,95})(?:@(?<revision>[^/@]{1,255}))?(?:\/(?<path>.*))?$/s
const DEFAULT_REVISION = 'main'

/** Tells whether an address is one that is fetched, as against a volume, an image or a folder of the machine. */
export function isFetched(uri: string): boolean {
  return schemeOf(uri) in SCHEMES
}

/**
 * Parses the address of a model: an archive over http(s), a prefix in a bucket, a folder on a Hub, or an artifact in a
 * registry.
 *
 * @throws ServeError FLAG_INVALID that shows the address without its secrets, and the wanted form.
 */
export function parseSourceUri(text: string): SourceUri {
  const scheme = schemeOf(text)
  const found = SCHEMES[scheme]?.parse(text, text.slice(scheme.length + '://'.length))
  if (found === undefined || typeof found === 'string') throw refusal(text, found)
  return found
}

function schemeOf(uri: string): string {
  const scheme = /^([a-z0-9]+):\/\//.exec(uri)?.[1] ?? ''
  return Object.hasOwn(SCHEMES, scheme) ? scheme : ''
}

function parseHttp(text: string): SourceUri | Problem | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') {
    return 'user and password come from the secret, never from the address'
  }
  url.hash = ''
  return { kind: 'http', url }
}

function parseS3(rest: string): SourceUri | Problem | undefined {
  const [, bucket = '', path = ''] = /^([^/]+)(?:\/(.*))?$/.exec(rest) ?? []
  if (bucket === '') return undefined
  if (!BUCKET.test(bucket)) return `"${bucket.replace(/^.*@/s, '')}" is no name of a bucket`
  const prefix = path === '' || path.endsWith('/') ? path : `${path}/`
  return { kind: 's3', bucket, prefix }
}

function parseHub(rest: string): SourceUri | undefined {
  const { repository, revision = DEFAULT_REVISION, path = '' } = HUB.exec(rest)?.groups ?? {}
  if (repository === undefined) return undefined
  try {
    // Names of branches may have slashes, which an address writes as %2F.
    const name = decodeURIComponent(revision)
    return { kind: 'hf', repository, revision: name, path: path.replaceAll(/^\/+|\/+$/g, '') }
  } catch {
    return undefined
  }
}

function parseOci(rest: string): SourceUri | undefined {
  const address = parseImageAddress(rest)
  return address === undefined ? undefined : { kind: 'oci', ...address }
}

/** Shows an address to people: leaves out user, password and query, which may hold a signature. */
export function showUri(uri: URL | string): string {
  const text = String(uri)
  // These are no URLs: what follows the host may be a tag or a revision.
  if (/^(hf|oci):/.test(text) || !URL.canParse(text)) {
    return text.replace(/[?#].*$/s, '').replace(/\/\/[^/]*@/, '//')
  }
  const url = new URL(text)
  return `${url.protocol}//${url.host}${url.pathname}`
}

function refusal(text: string, problem = `want ${WANTED}`): ServeError {
  return new ServeError('FLAG_INVALID', `--uri: "${showUri(text)}": ${problem}`, {
    details: { field: '--uri' },
  })
}
