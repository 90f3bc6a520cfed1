import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { SecretText } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { readBoundedText } from '../bounded-read.ts'

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
] as const
/** Their values are sent as they are; a client library would refuse others with the value in its message. */
const HEADERS: ReadonlySet<string> = new Set([
  'token',
  'AWS_ACCESS_KEY_ID',
  'AWS_SESSION_TOKEN',
  'AWS_REGION',
])

type Values = { readonly [Key in (typeof KEYS)[number]]?: string }

/**
 * Reads credentials from the folder where a Secret is mounted, one file for each key. Unknown keys are ignored.
 *
 * @throws ServeError SETTING_INVALID that names the key, never its value.
 */
export async function readCredentials(directory: string): Promise<FetchCredentials> {
  const values: Partial<Record<(typeof KEYS)[number], string>> = {}
  // One after the other, so that the first key at fault is the one that the error names.
  for (const key of KEYS) {
    const text = await readKey(directory, key)
    if (text !== '') values[key] = text
  }
  const { 'ca.crt': ca, AWS_REGION: awsRegion, AWS_ENDPOINT_URL: endpoint } = values
  return {
    ...toAuthorization(values),
    ...toAws(values),
    ...(ca !== undefined && { ca: requireCertificates(ca) }),
    ...(awsRegion !== undefined && { awsRegion }),
    ...(endpoint !== undefined && { awsEndpoint: toEndpoint(endpoint) }),
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
  if (HEADERS.has(key) && !/^[!-~]*$/.test(text)) {
    throw refusal(key, 'has characters that no header can carry')
  }
  return text
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

function toEndpoint(text: string): URL {
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  if (url !== null && url.username === '' && url.search === '') return url
  throw refusal('AWS_ENDPOINT_URL', 'is no http(s)://HOST[:PORT][/PATH] without user and query')
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
  return new ServeError('SETTING_INVALID', `key ${key} of the secret ${problem}`, {
    cause,
    details: { field: key },
  })
}
