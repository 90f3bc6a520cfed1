import { SecretText } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { RepositoryUri } from '../repository-uri.ts'
import type { AzureAccount } from './as-api.ts'
import {
  type AzureIdentity,
  type CloudIdentity,
  type TokenSource,
  tokenSender,
} from './cloud-tokens.ts'
import {
  type EnvironmentVariables,
  readCredentialEntry,
  readEndpoint,
  settingRefusal,
  textsOf,
  WITHOUT_LIBRARIES,
} from './credential-file.ts'

type Address = Extract<RepositoryUri, { readonly kind: 'as' }>

/** The account, and the identity that reads it where it has no key. */
interface FoundAccount extends Omit<AzureAccount, 'token'> {
  readonly identity?: AzureIdentity
}

/** Finds the account of a repository in Azure, with the key or the tokens for its requests. */
export class AzureCredentials {
  readonly #at: Address
  readonly #env: EnvironmentVariables
  readonly #identity: CloudIdentity | undefined
  #opened: { readonly key: string; readonly source: Promise<TokenSource> } | undefined

  constructor(
    at: Address,
    o: { readonly env: EnvironmentVariables; readonly identity: CloudIdentity | undefined },
  ) {
    this.#at = at
    this.#env = o.env
    this.#identity = o.identity
  }

  /**
   * Reads the account and its credentials as they are now.
   *
   * @throws ServeError SETTING_INVALID that names the variable, never a value.
   */
  async read(http: Parameters<typeof tokenSender>[0]): Promise<AzureAccount> {
    const { identity, ...account } = await readAzureAccount(this.#at, this.#env)
    if (identity === undefined) return account
    const source = await this.#open(identity)
    return { ...account, token: () => source(tokenSender(http)) }
  }

  /** Opens a source of tokens. It is kept because a client of the library keeps its token. */
  async #open(identity: AzureIdentity): Promise<TokenSource> {
    const library = this.#identity
    const field = fieldOf(identity)
    if (library === undefined) throw settingRefusal(field, WITHOUT_LIBRARIES)
    const secret = identity.kind === 'secret' ? identity.secret.reveal() : ''
    const key = JSON.stringify([identity, secret])
    if (this.#opened?.key !== key) this.#opened = { key, source: library.azure(identity) }
    const source = await this.#opened.source.catch(refuse)
    return (send) => source(send).catch(refuse)

    function refuse(error: unknown): never {
      if (!(error instanceof Error) || error instanceof ServeError) throw error
      throw settingRefusal(field, `has an identity that cannot be used: ${error.message}`)
    }
  }
}

function fieldOf({ kind }: AzureIdentity): string {
  if (kind === 'workload') return 'AZURE_FEDERATED_TOKEN_FILE'
  return kind === 'secret' ? 'AZURE_CLIENT_SECRET' : 'AZURE_STORAGE_AUTH_TYPE'
}

/**
 * Reads the account of a repository as Triton does: from the entry of the file that TRITON_CLOUD_CREDENTIAL_PATH names, else from
 * the variables AZURE_STORAGE_*. If these name no account, the address does. Without a key and an identity, requests are not
 * signed.
 *
 * @throws ServeError SETTING_INVALID that names the variable, never a value.
 */
export async function readAzureAccount(
  at: Address,
  env: EnvironmentVariables,
): Promise<FoundAccount> {
  const found = await readSettings(at, env)
  const account = found.account.value || at.account
  // It becomes a part of a host's name.
  if (!/^[a-z0-9-]{3,63}$/.test(account)) {
    throw settingRefusal(found.account.field, `is "${account}", want the name of an account`)
  }
  const key = found.key.value
  if (key && !/^[A-Za-z0-9+/]+={0,2}$/.test(key)) {
    throw settingRefusal(found.key.field, 'is no key in base64')
  }
  const type = toType(found.type)
  const endpoint = readEndpoint('AZURE_STORAGE_SERVICE_ENDPOINT', env)
  const common = { account, ...(endpoint !== undefined && { endpoint }) }
  if (key && type !== 'default') return { ...common, key: new SecretText(key) }
  const identity = type === 'key' ? undefined : readIdentity(env, type)
  return { ...common, ...(identity !== undefined && { identity }) }
}

function toType({ field, value }: Setting): 'key' | 'default' | undefined {
  if (!value) return undefined
  if (value === 'key' || value === 'default') return value
  throw settingRefusal(field, `is "${value}", want key or default`)
}

interface Setting {
  /** Name of the field, for messages. */
  readonly field: string
  readonly value: string | undefined
}

async function readSettings(
  at: Address,
  env: EnvironmentVariables,
): Promise<Readonly<Record<'account' | 'key' | 'type', Setting>>> {
  const entry = await readCredentialEntry(at, env)
  const named = textsOf(entry)
  const of = (variable: string, name: string): Setting =>
    entry === undefined
      ? { field: variable, value: env[variable] }
      : { field: `${name} of TRITON_CLOUD_CREDENTIAL_PATH`, value: named[name] }
  return {
    account: of('AZURE_STORAGE_ACCOUNT', 'account_str'),
    key: of('AZURE_STORAGE_KEY', 'account_key'),
    type: of('AZURE_STORAGE_AUTH_TYPE', 'auth_type'),
  }
}

/**
 * Reads the identity of the process, in the order of Azure's libraries. The machine is asked only if that is wanted, or if a
 * variable says that it has an answer: elsewhere every start would wait for it.
 */
function readIdentity(
  env: EnvironmentVariables,
  type: 'default' | undefined,
): AzureIdentity | undefined {
  const { AZURE_CLIENT_SECRET: secret, AZURE_FEDERATED_TOKEN_FILE: tokenFile } = env
  const clientId = env['AZURE_CLIENT_ID'] || undefined
  if (!secret && !tokenFile) {
    return type === 'default' || env['IDENTITY_ENDPOINT']
      ? { kind: 'managed', clientId }
      : undefined
  }
  const beside = secret ? 'AZURE_CLIENT_SECRET' : 'AZURE_FEDERATED_TOKEN_FILE'
  const wanted = (field: string): string => {
    const value = env[field]
    if (value) return value
    throw settingRefusal(field, `is absent, want it beside ${beside}`)
  }
  const ids = { tenantId: wanted('AZURE_TENANT_ID'), clientId: wanted('AZURE_CLIENT_ID') }
  const authorityHost = readEndpoint('AZURE_AUTHORITY_HOST', env)?.href
  const common = { ...ids, authorityHost }
  if (secret) return { kind: 'secret', ...common, secret: new SecretText(secret) }
  return { kind: 'workload', ...common, tokenFile: tokenFile ?? '' }
}
