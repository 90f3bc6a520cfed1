import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { Secret } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { readBounded } from '../bounded-read.ts'

/** What a fetch shows to servers, and whom it trusts. Nothing here is ever printed. */
export interface FetchCredentials {
  /** The value of the header `authorization`, for http(s). */
  readonly authorization?: Secret
  /** Certificates in PEM that are trusted beside those that Node.js trusts. */
  readonly ca?: string
  readonly aws?: {
    readonly accessKeyId: string
    readonly secretAccessKey: Secret
    readonly sessionToken?: Secret
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

type Values = ReadonlyMap<string, string>

/**
 * Reads the folder that a Secret is mounted at: a file for each key. Keys that are none of ours do not count.
 *
 * @throws ServeError SETTING_INVALID that names the key, never its value.
 */
export async function readCredentials(directory: string): Promise<FetchCredentials> {
  const values = new Map<string, string>()
  for (const key of KEYS) {
    const text = await readKey(directory, key)
    if (text !== undefined && text !== '') values.set(key, text)
  }
  const ca = values.get('ca.crt')
  const awsRegion = values.get('AWS_REGION')
  return {
    ...(ca !== undefined && { ca: requireCertificates(ca) }),
    ...(awsRegion !== undefined && { awsRegion: headerText('AWS_REGION', awsRegion) }),
    ...toAuthorization(values),
    ...toAws(values),
    ...toEndpoint(values.get('AWS_ENDPOINT_URL')),
  }
}

async function readKey(directory: string, key: string): Promise<string | undefined> {
  const path = join(directory, key)
  try {
    return (await readBounded(path, MAX_BYTES)).trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    const { message } = ServeError.from(error)
    throw refusal(key, `cannot be read: ${message}`, error)
  }
}

function toAuthorization(values: Values): Pick<FetchCredentials, 'authorization'> {
  const [token, username, password] = ['token', 'username', 'password'].map((key) =>
    values.get(key),
  )
  if (token !== undefined) {
    if (username !== undefined) throw refusal('token', 'came with username, want one of the two')
    return { authorization: new Secret(`Bearer ${headerText('token', token)}`) }
  }
  if (username === undefined && password === undefined) return {}
  if (username === undefined) throw refusal('username', 'is missing beside password')
  const pair = Buffer.from(`${username}:${password ?? ''}`, 'utf8').toString('base64')
  return { authorization: new Secret(`Basic ${pair}`) }
}

function toAws(values: Values): Pick<FetchCredentials, 'aws'> {
  const [accessKeyId, secretAccessKey, sessionToken] = [
    'AWS_ACCESS_KEY_ID',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_SESSION_TOKEN',
  ].map((key) => values.get(key))
  if (accessKeyId === undefined && secretAccessKey === undefined) return {}
  if (accessKeyId === undefined) throw refusal('AWS_ACCESS_KEY_ID', 'is missing')
  if (secretAccessKey === undefined) throw refusal('AWS_SECRET_ACCESS_KEY', 'is missing')
  return {
    aws: {
      accessKeyId: headerText('AWS_ACCESS_KEY_ID', accessKeyId),
      secretAccessKey: new Secret(secretAccessKey),
      ...(sessionToken !== undefined && {
        sessionToken: new Secret(headerText('AWS_SESSION_TOKEN', sessionToken)),
      }),
    },
  }
}

function toEndpoint(text: string | undefined): Pick<FetchCredentials, 'awsEndpoint'> {
  if (text === undefined) return {}
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw refusal('AWS_ENDPOINT_URL', 'is no http(s)://HOST[:PORT][/PATH]')
  }
  const awsEndpoint = new URL(text)
  if (awsEndpoint.username !== '' || awsEndpoint.search !== '') {
    throw refusal('AWS_ENDPOINT_URL', 'has a user or a query, want neither')
  }
  return { awsEndpoint }
}

/** TLS leaves out what it cannot read, and the server would be said not to be trusted. */
function requireCertificates(text: string): string {
  // Each with what follows it: one without an end is none that can be read.
  const found = text
    .split(/(?=-----BEGIN )/)
    .filter((part) => /^-----BEGIN [A-Z0-9 ]*CERTIFICATE-----/.test(part))
  if (found.length === 0) throw refusal('ca.crt', 'has no certificate in PEM')
  for (const [i, one] of found.entries()) {
    if (!isReadable(one)) {
      throw refusal('ca.crt', `has a certificate that cannot be read, the ${i + 1}. of it`)
    }
  }
  return text
}

function isReadable(certificate: string): boolean {
  try {
    return new X509Certificate(certificate).raw.byteLength > 0
  } catch {
    return false
  }
}

/** A header of several lines would be refused by the client library with the value in its text. */
function headerText(key: string, value: string): string {
  if (!/^[!-~]+$/.test(value)) throw refusal(key, 'has characters that no header can carry')
  return value
}

function refusal(key: string, problem: string, cause?: unknown): ServeError {
  return new ServeError('SETTING_INVALID', `key ${key} of the secret ${problem}`, {
    cause,
    details: { field: key },
  })
}
