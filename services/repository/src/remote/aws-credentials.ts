import { join } from 'node:path'
import { SecretText } from '@tutti/chassis'
import type { FetchCredentials } from '../fetch/credentials.ts'
import type { RepositoryUri } from '../repository-uri.ts'
import {
  type EnvironmentVariables,
  readCredentialEntry,
  readEndpoint,
  readIfThere,
  settingRefusal,
  type Texts,
  textsOf,
} from './credential-file.ts'

/**
 * Reads the credentials of a repository in S3 in Triton's order: the file that TRITON_CLOUD_CREDENTIAL_PATH names, the variables
 * AWS_*, the profile in the files of AWS. The keys of pods and machines come from `AwsRoles`.
 *
 * @throws ServeError SETTING_INVALID that names the file or the variable, never a value.
 */
export async function readAwsCredentials(
  at: Extract<RepositoryUri, { readonly kind: 's3' }>,
  env: EnvironmentVariables,
): Promise<FetchCredentials> {
  const named = textsOf(await readCredentialEntry(at, env))
  const file = await readProfile(named['profile'] || env['AWS_PROFILE'] || 'default', env)
  const inFile = toKeys(file, 'aws_access_key_id', 'aws_secret_access_key', 'aws_session_token')
  const given = [
    toKeys(named, 'key_id', 'secret_key', 'session_token'),
    toKeys(env, 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'),
  ]
  const sources = named['profile'] ? [inFile] : [...given, inFile]
  const regions = [named['region'], env['AWS_REGION'], env['AWS_DEFAULT_REGION'], file['region']]
  const awsRegion = regions.find((region) => region)
  const awsEndpoint = at.endpoint ?? readEndpoint('AWS_ENDPOINT_URL', env)
  return {
    ...toAws(sources.find(({ id }) => id)),
    ...(awsRegion !== undefined && { awsRegion }),
    ...(awsEndpoint !== undefined && { awsEndpoint }),
  }
}

type Keys = ReturnType<typeof toKeys>

function toKeys(from: EnvironmentVariables, id: string, secret: string, token: string) {
  return { id: from[id], secret: from[secret], token: from[token] }
}

function toAws(keys: Keys | undefined): Pick<FetchCredentials, 'aws'> {
  if (!keys?.id) return {}
  const { id: accessKeyId, secret, token } = keys
  if (!secret) throw settingRefusal('AWS_SECRET_ACCESS_KEY', 'is missing')
  if (!/^[!-~]+$/.test(accessKeyId)) throw settingRefusal('AWS_ACCESS_KEY_ID', 'is no key')
  const sessionToken = token ? { sessionToken: new SecretText(token) } : {}
  return { aws: { accessKeyId, secretAccessKey: new SecretText(secret), ...sessionToken } }
}

/** Reads what AWS's files say of a profile; nothing where they are not there. */
async function readProfile(profile: string, env: EnvironmentVariables): Promise<Texts> {
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
