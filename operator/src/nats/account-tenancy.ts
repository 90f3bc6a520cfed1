import type { CallOptions, Secret, Stored } from '@tutti/kube'
import { type AccountKeys, createAccountId, toAccountIssuer } from './account-keys.ts'
import { ACCOUNT_LABEL, AccountOwners, accountIdOf } from './account-owners.ts'
import {
  type CertificatePair,
  isServerCertificateGood,
  issueServerCertificate,
} from './certificates.ts'
import { accountsChanged, serversReloaded, serversUnreachable } from './log-events.ts'
import { OwnKeys } from './own-keys.ts'
import {
  type AccountLimits,
  buildAccountsConfig,
  buildClusterConfig,
  buildRemoval,
  buildTenantAccount,
  clusterFile,
  TENANCY_FILE,
  type TenantAccount,
} from './server-config.ts'
import { openSystemLink, type ServerFigures, type SystemLink } from './system-link.ts'
import type { SecretTexts } from './tenancy-keys.ts'
import { findSecret, NATS_SECRETS, writeSecret } from './tenancy-secrets.ts'
import {
  type EnsureTenantOptions,
  ensureTenantSecret,
  type TenantSecretOptions,
} from './tenant-secret.ts'

/** The keys of the servers' Secret that hold their certificate, its private key and the authority. */
export const CERTIFICATE_FILES = {
  certificate: 'tls.crt',
  key: 'tls.key',
  authorities: 'ca.crt',
} as const

export interface AccountTenancyOptions extends TenantSecretOptions {
  /** Namespace of the operator. */
  readonly namespace: string
  /** Addresses of the servers, `tls://HOST:PORT`. */
  readonly urls: readonly string[]
  /** Cluster ports of the servers, `host:port`; empty if they are no cluster. */
  readonly clusterHosts: readonly string[]
  readonly limits: AccountLimits
  /** Function that lists the known Secrets of all namespaces. */
  readonly secrets: () => Iterable<Stored<Secret>>
  /** Callback when the connection to the servers is lost. The caller must call `ensureServers` again. */
  readonly onLost: () => void
  /** Function that connects to the servers; a substitute in tests. */
  readonly openLink?: typeof openSystemLink
}

/** How soon unreachable servers are tried again: a server in a new pod admits no tenant until it has been told the accounts. */
const CONNECT_MS = 500
/** How often accounts are compared with those of the servers, without a cause. */
const COMPARE_MS = 600_000
/**
 * Time between two reloads of the servers, for new certificates: one is in the pods minutes after it is in the Secret, and has a
 * third of its life then.
 */
const RELOAD_MS = 43_200_000
const CERTIFICATE_LIFETIME_MS = 365 * 86_400_000

/**
 * Isolates namespaces on the chart's NATS servers: each has its own account. The account is derived from the operator's keys and
 * a random label of the credential Secret. If this Secret is made again, the namespace gets another account, and the former one
 * is removed with all its connections. Servers learn accounts only from the operator, because a file could bring back removed
 * accounts.
 *
 * Methods are idempotent and write only what differs. They throw KubeErrors of the client. They throw a TerminalError if a person
 * must act; its message names the Secret and what it must hold.
 */
export class AccountTenancy {
  readonly #options: AccountTenancyOptions
  readonly #keys: OwnKeys
  readonly #owners = new AccountOwners()
  /** Claims that the servers were told over this connection, by account. */
  readonly #told = new Map<string, string>()
  /** The next public key of a rotation, once the servers were told. */
  #learned: string | undefined
  /** Accounts that were made with the present keys, by the owner's name. They are kept because signing is slow. */
  #made: ReadonlyMap<string, TenantAccount> = new Map()
  #madeOf = ''
  #link: SystemLink | undefined
  #isUnreachable = false
  #reloadAtMs = 0

  constructor(o: AccountTenancyOptions) {
    this.#options = o
    this.#keys = new OwnKeys(o)
  }

  /** Names of the Secrets in the operator's namespace that `ensureServers` reads. */
  get secretNames(): readonly string[] {
    return [NATS_SECRETS.keys, NATS_SECRETS.server]
  }

  /**
   * Ensures the Secrets with the keys and with the servers' files. It makes running servers know the accounts of all namespaces
   * and no others. It also takes a requested step of a key rotation; the next key is used only when a server has learned it.
   *
   * @returns issuer, the public key that signs credentials now; credentials of another issuer need a call of `ensureTenant`.
   * requeueAfterMs, the time until the next call, in milliseconds.
   */
  async ensureServers(
    o: CallOptions = {},
  ): Promise<{ readonly issuer: string; readonly requeueAfterMs: number }> {
    const { client } = this.#options
    const present = await this.#keys.ensure(o)
    const key = { namespace: this.#options.namespace, name: NATS_SECRETS.server }
    const found = await findSecret(client, key, o)
    const texts = this.#serverTexts(present, found?.texts ?? {})
    await writeSecret(client, found, { key, component: 'nats', texts }, o)
    const told = await this.#tellServers(present)
    const isNextKnown = (next: string): boolean => next === this.#learned
    const { keys, isRotated } = await this.#keys.rotate({ ...o, isNextKnown })
    const requeueAfterMs = isRotated ? await this.#tellServers(keys) : told
    return { issuer: keys.signing.current.publicKey, requeueAfterMs }
  }

  /**
   * Ensures the Secret with the credential of a namespace.
   *
   * @returns the time at which the credential must be renewed, in milliseconds since the epoch.
   */
  async ensureTenant(
    namespace: string,
    o: EnsureTenantOptions = {},
  ): Promise<{ readonly renewAtMs: number }> {
    const keys = await this.#keys.ensure(o)
    const key = { namespace, name: NATS_SECRETS.credentials }
    const found = await findSecret(this.#options.client, key, o)
    const id = accountIdOf(found?.labels) ?? createAccountId()
    const secret = {
      key,
      found,
      labels: { [ACCOUNT_LABEL]: id },
      issuer: toAccountIssuer(keys, { namespace, id }),
      authorities: keys.authority.certificate,
    }
    return await ensureTenantSecret(this.#options, secret, o)
  }

  /**
   * Reads the figures of the servers. It returns none while this process is not connected, which is so for one that does not
   * lead.
   */
  async readServers(): Promise<readonly ServerFigures[]> {
    return (await this.#link?.readServers(Math.max(1, this.#options.clusterHosts.length))) ?? []
  }

  async close(): Promise<void> {
    await this.#link?.close()
  }

  /** Plans the accounts. @returns waitMs: time until there is one more. */
  async #accounts(
    keys: AccountKeys,
  ): Promise<{ readonly accounts: readonly TenantAccount[]; readonly waitMs: number }> {
    const { clock, limits, secrets } = this.#options
    const { owners, waitMs } = this.#owners.take(secrets(), clock.now())
    const digest = JSON.stringify([keys.operator, keys.accounts, keys.signing])
    const before = digest === this.#madeOf ? this.#made : new Map<string, TenantAccount>()
    const made = new Map<string, TenantAccount>()
    for (const owner of owners) {
      const name = `${owner.namespace}/${owner.id}`
      const issuedAtS = Math.floor(clock.epochMs() / 1000)
      // Takes milliseconds each, and the first time there are as many as namespaces.
      if (!before.has(name)) await new Promise((resolve) => setImmediate(resolve))
      made.set(name, before.get(name) ?? buildTenantAccount(keys, owner, { limits, issuedAtS }))
    }
    this.#made = made
    this.#madeOf = digest
    return { accounts: [...made.values()], waitMs }
  }

  #serverTexts(keys: AccountKeys, present: SecretTexts): SecretTexts {
    const { clusterHosts: hosts } = this.#options
    const { certificate, key } = this.#certificate(keys, present)
    return {
      [TENANCY_FILE]: buildAccountsConfig(keys),
      ...(hosts.length > 1 && { [clusterFile(hosts.length)]: buildClusterConfig(keys, hosts) }),
      [CERTIFICATE_FILES.certificate]: certificate,
      [CERTIFICATE_FILES.key]: key,
      [CERTIFICATE_FILES.authorities]: keys.authority.certificate,
    }
  }

  #certificate({ authority }: AccountKeys, present: SecretTexts): CertificatePair {
    const { urls, clusterHosts, clock } = this.#options
    const names = [...urls.map((url) => url.replace(/^\w+:\/\//, '')), ...clusterHosts]
    const hosts = [...new Set(names.map((name) => name.replace(/:\d+$/, '')))]
    const nowMs = clock.epochMs()
    const there = {
      certificate: present[CERTIFICATE_FILES.certificate] ?? '',
      key: present[CERTIFICATE_FILES.key] ?? '',
    }
    if (isServerCertificateGood(there, authority, { hosts, nowMs })) return there
    return issueServerCertificate(authority, hosts, { nowMs, lifetimeMs: CERTIFICATE_LIFETIME_MS })
  }

  /** @returns when to do it again, milliseconds. @throws what the servers refuse. */
  async #tellServers(keys: AccountKeys): Promise<number> {
    const { clock, log } = this.#options
    const link = await this.#connect(keys)
    if (link === undefined) return CONNECT_MS
    try {
      const { accounts, waitMs } = await this.#accounts(keys)
      await this.#tellAccounts(link, keys, accounts)
      if (clock.epochMs() >= this.#reloadAtMs) {
        serversReloaded(log, await link.reloadServers())
        this.#reloadAtMs = clock.epochMs() + RELOAD_MS
      }
      return Math.min(COMPARE_MS, waitMs)
    } catch (error) {
      // Whatever it is, the next attempt begins with a connection, and looks at everything.
      await link.close()
      throw error
    }
  }

  async #tellAccounts(
    link: SystemLink,
    keys: AccountKeys,
    wanted: readonly TenantAccount[],
  ): Promise<void> {
    const known = new Set(await link.listAccounts())
    const changed = wanted.filter(
      ({ account, jwt }) => this.#told.get(account) !== jwt || !known.has(account),
    )
    for (const { account, jwt } of changed) {
      await link.updateAccount(jwt)
      this.#told.set(account, jwt)
    }
    const kept = new Set([keys.system.publicKey, ...wanted.map(({ account }) => account)])
    const gone = [...known].filter((account) => !kept.has(account))
    if (gone.length > 0) await link.removeAccounts(buildRemoval(keys, gone))
    for (const account of gone) this.#told.delete(account)
    this.#learned = keys.signing.next?.publicKey
    if (changed.length + gone.length > 0)
      accountsChanged(this.#options.log, changed.length, gone.length)
  }

  async #connect({ system, authority }: AccountKeys): Promise<SystemLink | undefined> {
    if (this.#link !== undefined) return this.#link
    const { urls, clock, log, openLink = openSystemLink } = this.#options
    this.#told.clear()
    this.#learned = undefined
    this.#reloadAtMs = 0
    const onLost = (): void => {
      this.#link = undefined
      this.#options.onLost()
    }
    const authorities = authority.certificate
    try {
      this.#link = await openLink({ urls, authorities, system, nowMs: clock.epochMs(), onLost })
      this.#isUnreachable = false
    } catch (error) {
      // At the first start they wait for the Secret that was just written. Once is enough to say so.
      if (!this.#isUnreachable) serversUnreachable(log, error)
      this.#isUnreachable = true
    }
    return this.#link
  }
}
