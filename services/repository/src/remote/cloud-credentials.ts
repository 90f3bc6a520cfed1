import { join } from 'node:path'
import { Secret } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { readBounded } from '../bounded-read.ts'
import type { FetchCredentials } from '../fetch/credentials.ts'
import type { RepositoryUri } from './repository-uri.ts'

type Environment = Readonly<Record<string, string | undefined>>
type Texts = Readonly<Record<string, string>>

const MAX_BYTES = 1024 * 1024
/** Sources of credentials that are not read here: reading a bucket without a signature would only say that it is denied. */
const NOT_READ = [
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
] as const

/**
 * The credentials of a repository, as Triton finds them: the file that TRITON_CLOUD_CREDENTIAL_PATH names, the variables AWS_*,
 * the profile in the files of AWS. Without any, requests are not signed.
 *
 * @throws ServeError SETTING_INVALID that names the file or the variable, never a value.
 */
export async function readCloudCredentials(
  { uri, endpoint }: RepositoryUri,
  env: Environment,
): Promise<FetchCredentials> {
  const named = await readCredentialFile(uri, env['TRITON_CLOUD_CREDENTIAL_PATH'])
  const file = await readProfile(named['profile'] || env['AWS_PROFILE'] || 'default', env)
  const inFile = toKeys(file, 'aws_access_key_id', 'aws_secret_access_key', 'aws_session_token')
  const given = [
    toKeys(named, 'key_id', 'secret_key', 'session_token'),
    toKeys(env, 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'),
  ]
  const sources = named['profile'] ? [inFile] : [...given, inFile]
  const regions = [named['region'], env['AWS_REGION'], env['AWS_DEFAULT_REGION'], file['region']]
  const awsRegion = regions.find((region) => region)
  const awsEndpoint = endpoint ?? toUrl(env['AWS_ENDPOINT_URL'])
  return {
    ...toAws(
      sources.find(({ id }) => id),
      env,
    ),
    ...(awsRegion !== undefined && { awsRegion }),
    ...(awsEndpoint !== undefined && { awsEndpoint }),
  }
}

type Keys = ReturnType<typeof toKeys>

function toKeys(from: Environment, id: string, secret: string, token: string) {
  return { id: from[id], secret: from[secret], token: from[token] }
}

function toAws(keys: Keys | undefined, env: Environment): Pick<FetchCredentials, 'aws'> {
  if (!keys?.id) {
    const other = NOT_READ.find((name) => env[name] !== undefined)
    if (other === undefined) return {}
    throw refusal(other, 'is no source of credentials here, want AWS_ACCESS_KEY_ID or a profile')
  }
  const { id: accessKeyId, secret, token } = keys
  if (!secret) throw refusal('AWS_SECRET_ACCESS_KEY', 'is missing')
  if (!/^[!-~]+$/.test(accessKeyId)) throw refusal('AWS_ACCESS_KEY_ID', 'is no key')
  const sessionToken = token ? { sessionToken: new Secret(token) } : {}
  return { aws: { accessKeyId, secretAccessKey: new Secret(secret), ...sessionToken } }
}

/** The entry of Triton's file whose name is the longest beginning of the address. */
async function readCredentialFile(uri: string, path: string | undefined): Promise<Texts> {
  if (!path) return {}
  const field = 'TRITON_CLOUD_CREDENTIAL_PATH'
  try {
    const file: unknown = JSON.parse(await readBounded(path, MAX_BYTES))
    const entries = Object.entries(membersOf(membersOf(file)['s3']))
    const [found] = entries
      .filter(([name]) => uri.startsWith(name))
      .toSorted(([a], [b]) => b.length - a.length)
    const texts = Object.entries(membersOf(found?.[1]))
    return Object.fromEntries(texts.map(([name, value]) => [name, String(value)]))
  } catch (error) {
    const name = error instanceof SyntaxError ? 'it is no JSON' : ServeError.from(error).message
    throw refusal(field, `names '${path}', which cannot be read: ${name}`)
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** What AWS's files say of a profile; nothing where they are not there. */
async function readProfile(profile: string, env: Environment): Promise<Texts> {
  const home = join(env['HOME'] ?? '/root', '.aws')
  const config = await readIni(env['AWS_CONFIG_FILE'] ?? join(home, 'config'))
  const keys = await readIni(env['AWS_SHARED_CREDENTIALS_FILE'] ?? join(home, 'credentials'))
  return { ...config.get(`profile ${profile}`), ...config.get(profile), ...keys.get(profile) }
}

async function readIni(path: string): Promise<ReadonlyMap<string, Texts>> {
  const sections = new Map<string, Texts>()
  let section = ''
  for (const line of (await readIfThere(path)).split('\n')) {
    section = /^\s*\[\s*(.*?)\s*\]/.exec(line)?.[1] ?? section
    const [, name, value = ''] = /^\s*([\w.-]+)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (name !== undefined) sections.set(section, { ...sections.get(section), [name]: value })
  }
  return sections
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readBounded(path, MAX_BYTES)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw refusal(path, `cannot be read: ${ServeError.from(error).message}`)
  }
}

function toUrl(text: string | undefined): URL | undefined {
  if (!text) return undefined
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  if (url !== null && url.username === '' && url.search === '') return url
  throw refusal('AWS_ENDPOINT_URL', 'is no http(s)://HOST[:PORT][/PATH] without user and query')
}

function refusal(field: string, problem: string): ServeError {
  return new ServeError('SETTING_INVALID', `${field} ${problem}`, { details: { field } })
}
