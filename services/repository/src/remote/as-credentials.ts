import { Secret } from '@tutti/chassis'
import type { RepositoryUri } from '../repository-uri.ts'
import type { AzureAccount } from './as-api.ts'
import {
  type Environment,
  readCredentialEntry,
  readEndpoint,
  settingRefusal,
  textsOf,
} from './credential-file.ts'

/**
 * The account of a repository in Azure, as Triton finds it: the entry of the file that TRITON_CLOUD_CREDENTIAL_PATH names, else the
 * variables AZURE_STORAGE_*; without an account, the address names it. Without a key, requests are not signed.
 *
 * @throws ServeError SETTING_INVALID that names the variable, never a value.
 */
export async function readAzureAccount(
  at: Extract<RepositoryUri, { readonly kind: 'as' }>,
  env: Environment,
): Promise<AzureAccount> {
  const entry = await readCredentialEntry(at, env)
  const named = textsOf(entry)
  const found =
    entry === undefined
      ? { name: env['AZURE_STORAGE_ACCOUNT'], key: env['AZURE_STORAGE_KEY'] }
      : { name: named['account_str'], key: named['account_key'] }
  const kind = entry === undefined ? env['AZURE_STORAGE_AUTH_TYPE'] : named['auth_type']
  const fieldOf = (variable: string, name: string): string =>
    entry === undefined ? variable : `${name} of TRITON_CLOUD_CREDENTIAL_PATH`
  if (kind && kind !== 'key') {
    throw settingRefusal(
      fieldOf('AZURE_STORAGE_AUTH_TYPE', 'auth_type'),
      `is "${kind}", want key or none`,
    )
  }
  const account = found.name || at.account
  // It becomes a part of a host's name.
  if (!/^[a-z0-9-]{3,63}$/.test(account)) {
    throw settingRefusal(
      fieldOf('AZURE_STORAGE_ACCOUNT', 'account_str'),
      `is "${account}", want the name of an account`,
    )
  }
  if (found.key && !/^[A-Za-z0-9+/]+={0,2}$/.test(found.key)) {
    throw settingRefusal(fieldOf('AZURE_STORAGE_KEY', 'account_key'), 'is no key in base64')
  }
  const endpoint = readEndpoint('AZURE_STORAGE_SERVICE_ENDPOINT', env)
  return {
    account,
    ...(found.key && { key: new Secret(found.key) }),
    ...(endpoint !== undefined && { endpoint }),
  }
}
