import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { SecretText } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { readBoundedText } from '../bounded-read.ts'
import { membersOf, parseMembers } from '../json-members.ts'

/** The credentials of a fetch, and the certificates that it trusts. Nothing here is ever printed. */
export interface FetchCredentials {
  /** The value of the header `authorization`, for http(s). */
  readonly authorization?: SecretText
  /** Certificates in PEM that are trusted beside those that Node.js trusts. */
  readonly ca?: string
  readonly aws?: {
    readonly accessKeyId: string
    readonly secretAccessKey: SecretText
    readonly sessionToken?: SecretText
  }
  readonly awsRegion?: string
  readonly awsEndpoint?: URL
  /** Variables of the clouds' programs, for gs:// and as://. */
  readonly cloud?: ReadonlyMap<string, SecretText>
  /** Token and address of a Hub that is not that of Hugging Face. */
  readonly hub?: { readonly token?: SecretText; readonly endpoint?: URL }
  /** Values of the header `authorization` for registries, by host, or by host and the first parts of a repository. */
  readonly registries?: ReadonlyMap<string, SecretText>
}

const MAX_BYTES = 256 * 1024
const KEYS = [
  'username',
  'password',
  'token',
  'ca.crt',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_REGION',
  'AWS_ENDPOINT_URL',
  'HF_TOKEN',
  'HF_ENDPOINT',
  '.dockerconfigjson',
  'CLOUD_STORAGE_EMULATOR_ENDPOINT',
  'AZURE_STORAGE_ACCOUNT',
  'AZURE_STORAGE_KEY',
  'AZURE_STORAGE_SERVICE_ENDPOINT',
  'AZURE_TENANT_ID',
  'AZURE_CLIENT_ID',
  'AZURE_CLIENT_SECRET',
  'GOOGLE_APPLICATION_CREDENTIALS',
] as const
/** Names the file of its key, where the variable of its name names one, too. */
const GOOGLE_FILE = 'GOOGLE_APPLICATION_CREDENTIALS'
/** Their values are sent as they are; a client library would refuse others with the value in its message. */
const HEADERS: ReadonlySet<string> = new Set([
  'token',
  'AWS_ACCESS_KEY_ID',
  'AWS_SESSION_TOKEN',
  'AWS_REGION',
  'HF_TOKEN',
])

type Values = { readonly [Key in (typeof KEYS)[number]]?: string }

/**
 * Reads credentials from the folder where a Secret is mounted, one file for each key. Unknown keys are ignored.
 *
 * @param directory - undefined if there is no Secret.
 * @param env - environment, whose HF_TOKEN and HF_ENDPOINT count where the Secret has none. Its token counts for its own Hub alone.
 * @throws ServeError SETTING_INVALID that names the key, never its value.
 */
export async function readCredentials(
  directory: string | undefined,
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<FetchCredentials> {
  const values: Partial<Record<(typeof KEYS)[number], string>> = {}
  // One after the other, so that the first key at fault is the one that the error names.
  for (const key of directory === undefined ? [] : KEYS) {
    const text = await readKey(directory ?? '', key)
    if (text !== '') values[key] = text
  }
  addEnvironment(values, env)
  const { 'ca.crt': ca, AWS_REGION: awsRegion, AWS_ENDPOINT_URL: endpoint } = values
  return {
    ...toAuthorization(values),
    ...toAws(values),
    ...(ca !== undefined && { ca: requireCertificates(ca) }),
    ...(awsRegion !== undefined && { awsRegion }),
    ...(endpoint !== undefined && { awsEndpoint: toEndpoint('AWS_ENDPOINT_URL', endpoint) }),
    ...toHub(values),
    ...toRegistries(values['.dockerconfigjson']),
    ...toCloud(values, directory),
  }
}

/** Adds a Hub's token and address from the environment, where the Secret has none. */
function addEnvironment(
  values: Partial<Record<'HF_TOKEN' | 'HF_ENDPOINT', string>>,
  env: Readonly<Record<string, string | undefined>>,
): void {
  const hasOwnHub = values.HF_ENDPOINT !== undefined
  for (const key of ['HF_TOKEN', 'HF_ENDPOINT'] as const) {
    // The token of the environment is not for the Hub that a Secret names.
    if (hasOwnHub || values[key] !== undefined || !env[key]) continue
    values[key] = requireHeader(key, env[key].trim())
  }
}

/** @returns '' if there is no such key. */
async function readKey(directory: string, key: string): Promise<string> {
  let text: string
  try {
    text = (await readBoundedText(join(directory, key), MAX_BYTES)).trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw refusal(key, `cannot be read: ${ServeError.from(error).message}`, error)
  }
  return requireHeader(key, text)
}

function requireHeader(key: string, text: string): string {
  if (!HEADERS.has(key) || /^[!-~]*$/.test(text)) return text
  throw refusal(key, 'has characters that no header can carry')
}

function toAuthorization({
  token,
  username,
  password = '',
}: Values): Pick<FetchCredentials, 'authorization'> {
  if (token !== undefined && username !== undefined) {
    throw refusal('token', 'came with username, want one of the two')
  }
  if (token !== undefined) return { authorization: new SecretText(`Bearer ${token}`) }
  if (username === undefined && password !== '') {
    throw refusal('username', 'is missing beside password')
  }
  if (username === undefined) return {}
  const pair = Buffer.from(`${username}:${password}`, 'utf8').toString('base64')
  return { authorization: new SecretText(`Basic ${pair}`) }
}

function toAws({
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secret,
  AWS_SESSION_TOKEN: token,
}: Values): Pick<FetchCredentials, 'aws'> {
  if (accessKeyId === undefined && secret === undefined) return {}
  if (accessKeyId === undefined) throw refusal('AWS_ACCESS_KEY_ID', 'is missing')
  if (secret === undefined) throw refusal('AWS_SECRET_ACCESS_KEY', 'is missing')
  const sessionToken = token === undefined ? {} : { sessionToken: new SecretText(token) }
  return { aws: { accessKeyId, secretAccessKey: new SecretText(secret), ...sessionToken } }
}

function toHub({ HF_TOKEN: token, HF_ENDPOINT: endpoint }: Values): Pick<FetchCredentials, 'hub'> {
  if (token === undefined && endpoint === undefined) return {}
  return {
    hub: {
      ...(token !== undefined && { token: new SecretText(token) }),
      ...(endpoint !== undefined && { endpoint: toEndpoint('HF_ENDPOINT', endpoint) }),
    },
  }
}

function toCloud(values: Values, directory: string | undefined): Pick<FetchCredentials, 'cloud'> {
  const cloud = new Map<string, SecretText>()
  for (const key of KEYS) {
    const value = values[key]
    if (value === undefined || !/^(CLOUD|AZURE|GOOGLE)_/.test(key)) continue
    cloud.set(key, new SecretText(key === GOOGLE_FILE ? join(directory ?? '', key) : value))
  }
  return cloud.size === 0 ? {} : { cloud }
}

/** Reads the file that `docker login` writes, which Secrets of the type kubernetes.io/dockerconfigjson have. */
function toRegistries(text: string | undefined): Pick<FetchCredentials, 'registries'> {
  if (text === undefined) return {}
  const key = '.dockerconfigjson'
  const file = parseMembers(text)
  if (file === undefined) throw refusal(key, 'is no JSON')
  const registries = new Map<string, SecretText>()
  for (const [name, entry] of Object.entries(membersOf(file['auths']))) {
    const { auth, username, password } = membersOf(entry)
    const pair =
      typeof username === 'string' && username !== ''
        ? Buffer.from(`${username}:${String(password)}`).toString('base64')
        : typeof auth === 'string'
          ? auth
          : ''
    if (!/^[A-Za-z0-9+/]*={0,2}$/.test(pair)) throw refusal(key, 'has an auth that is not base64')
    if (pair === '') continue
    // Docker Hub's own entry is https://index.docker.io/v1/.
    const place = name.replace(/^https?:\/\//, '').replace(/(\/v[12])?\/*$/, '')
    const at = place.replace(/^index\.docker\.io(?=\/|$)/, 'docker.io')
    registries.set(at, new SecretText(`Basic ${pair}`))
  }
  return { registries }
}

function toEndpoint(key: string, text: string): URL {
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  if (url !== null && url.username === '' && url.search === '') return url
  throw refusal(key, 'is no http(s)://HOST[:PORT][/PATH] without user and query')
}

/** Refuses certificates that cannot be read. TLS leaves them out, and the server would seem not to be trusted. */
function requireCertificates(text: string): string {
  try {
    // It parses the first of several.
    void new X509Certificate(text)
    return text
  } catch (error) {
    throw refusal('ca.crt', 'has no certificate in PEM that can be read', error)
  }
}

function refusal(key: string, problem: string, cause?: unknown): ServeError {
  const where = key.startsWith('HF_') ? 'of the secret or the environment' : 'of the secret'
  return new ServeError('SETTING_INVALID', `key ${key} ${where} ${problem}`, {
    cause,
    details: { field: key },
  })
}
