import type { CallOptions, ObjectKey, Secret, Stored } from '@tutti/kube'
import { isManaged } from '../runtime/children.ts'
import {
  ACCOUNT_ID_PATTERN,
  type AccountKeys,
  type AccountOwner,
  createAccountId,
  createAccountKeys,
  parseAccountKeys,
  toAccountIssuer,
  toAccountTexts,
} from './account-keys.ts'
import {
  type CertificatePair,
  isServerCertificateGood,
  issueServerCertificate,
} from './certificates.ts'
import { accountsChanged, serversReloaded, serversUnreachable } from './log-events.ts'
import { NATS_SECRETS } from './nats-tenancy.ts'
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
import { openSystemLink, type SystemLink } from './system-link.ts'
import type { SecretTexts } from './tenancy-keys.ts'
import { findSecret, writeSecret } from './tenancy-secrets.ts'
import {
  type EnsureTenantOptions,
  ensureTenantSecret,
  type TenantSecretOptions,
} from './tenant-secret.ts'

/** Names of the Secrets, as NATS_SECRETS. */
export const ACCOUNT_SECRETS = {
  keys: 'tutti-nats-keys',
  server: 'tutti-nats-accounts',
  credentials: 'tutti-nats-account',
} as const

/** Names of all Secrets with credentials, which may be changed or deleted by others. */
export const CREDENTIAL_SECRETS: readonly string[] = [
  ACCOUNT_SECRETS.credentials,
  NATS_SECRETS.credentials,
]

/** Label of a namespace's Secret: what its account is derived from, see AccountOwner. */
export const ACCOUNT_LABEL = 'tutti.dev/nats-account'

/** Files of the servers' certificate, as keys of their Secret. */
export const CERTIFICATE_FILES = {
  certificate: 'tls.crt',
  key: 'tls.key',
  authorities: 'ca.crt',
} as const

export interface AccountTenancyOptions extends TenantSecretOptions {
  /** The operator's. */
  readonly namespace: string
  /** `tls://HOST:PORT` */
  readonly urls: readonly string[]
  /** `host:port` of each one's cluster port, if they are a cluster. */
  readonly clusterHosts: readonly string[]
  readonly limits: AccountLimits
  /** All Secrets that are known, of all namespaces. */
  readonly secrets: () => Iterable<Stored<Secret>>
  /** The servers cannot be reached any more, as far as is known: `ensureServers` has to be called again. */
  readonly onLost: () => void
  /** Replaced in tests. */
  readonly openLink?: typeof openSystemLink
}

/** An account, and whose it is. */
interface OwnedAccount extends TenantAccount {
  readonly owner: AccountOwner
}

/** Servers that are away are tried again after that: they wait for their Secret at the first start. */
const CONNECT_MS = 2_000
/** How often accounts are compared with those of the servers, without a cause. */
const COMPARE_MS = 600_000
/** A new certificate is in the pods minutes after it is in the Secret, and has a third of its life then. */
const RELOAD_MS = 43_200_000
const CERTIFICATE_LIFETIME_MS = 365 * 86_400_000
/** A Secret holds 1 MiB, and an account about 900 bytes. Servers that start know no more until the operator has reached them. */
const MOST_PRELOADED = 768

/**
 * Keeps the namespaces apart on the broker, each in an account of its own. What a namespace's account is follows from the keys, and
 * from a random label of the Secret with its credential: a Secret that is made again has another account, and the former one goes
 * with all of its connections.
 *
 * Methods are idempotent and throw as those of NatsTenancy.
 */
export class AccountTenancy {
  readonly #o: AccountTenancyOptions
  readonly #keys: OwnKeys<AccountKeys>
  /** What the servers were told over this connection, by account. */
  readonly #told = new Map<string, string>()
  /** Accounts that were made before: signing is slow. Of one set of keys, by the owner's id. */
  readonly #made = new Map<string, TenantAccount>()
  #madeOf = ''
  #link: SystemLink | undefined
  #isUnreachable = false
  #reloadAtMs = 0

  constructor(o: AccountTenancyOptions) {
    this.#o = o
    this.#keys = new OwnKeys({
      ...o,
      keys: this.#own(ACCOUNT_SECRETS.keys),
      server: this.#own(ACCOUNT_SECRETS.server),
      create: () => createAccountKeys(o.clock.epochMs()),
      parse: parseAccountKeys,
      toTexts: toAccountTexts,
    })
  }

  /** Names of the Secrets, in the operator's namespace, that `ensureServers` looks at. */
  get secretNames(): readonly string[] {
    return [ACCOUNT_SECRETS.keys, ACCOUNT_SECRETS.server]
  }

  /**
   * Ensures the keys, what servers start with, and that those which run know the accounts of all namespaces and no others. Takes a
   * step of a rotation that is asked for.
   *
   * @returns issuer: see NatsTenancy.ensureServers; requeueAfterMs: when to look again.
   */
  async ensureServers(
    o: CallOptions = {},
  ): Promise<{ readonly issuer: string; readonly requeueAfterMs: number }> {
    const { client } = this.#o
    const { keys, refusal } = await this.#keys.rotate(o)
    const accounts = await this.#accounts(keys)
    const key = this.#own(ACCOUNT_SECRETS.server)
    const found = await findSecret(client, key, o)
    const texts = this.#serverTexts(keys, accounts, found?.texts ?? {})
    await writeSecret(client, found, { key, component: 'nats', texts }, o)
    const requeueAfterMs = await this.#tellServers(keys, accounts)
    // The servers get what they need even if a rotation is refused.
    if (refusal !== undefined) throw refusal
    return { issuer: keys.signing.current.publicKey, requeueAfterMs }
  }

  /** Ensures the credential of a namespace, as NatsTenancy does. */
  async ensureTenant(
    namespace: string,
    o: EnsureTenantOptions = {},
  ): Promise<{ readonly renewAtMs: number }> {
    const keys = await this.#keys.ensure(o)
    const key = { namespace, name: ACCOUNT_SECRETS.credentials }
    const found = await findSecret(this.#o.client, key, o)
    const id = idOf(found?.labels) ?? createAccountId()
    const secret = {
      key,
      found,
      labels: { [ACCOUNT_LABEL]: id },
      issuer: toAccountIssuer(keys, { namespace, id }),
      authorities: keys.authority.certificate,
    }
    return await ensureTenantSecret(this.#o, secret, o)
  }

  async close(): Promise<void> {
    await this.#link?.close()
  }

  /** Whose accounts there shall be: of all Secrets with a credential, in the order of their namespaces. */
  #owners(): readonly AccountOwner[] {
    const owners: AccountOwner[] = []
    for (const secret of this.#o.secrets()) {
      const { name, namespace = '', labels } = secret.metadata
      const id = idOf(labels)
      if (name === ACCOUNT_SECRETS.credentials && id !== undefined && isManaged(secret)) {
        owners.push({ namespace, id })
      }
    }
    return owners.toSorted((one, other) => (one.namespace < other.namespace ? -1 : 1))
  }

  /** The accounts that there shall be, as servers know them from their Secret: what they are told later is newer. */
  async #accounts(keys: AccountKeys): Promise<readonly OwnedAccount[]> {
    const digest = JSON.stringify([keys.operator, keys.accounts, keys.signing])
    if (digest !== this.#madeOf) this.#made.clear()
    this.#madeOf = digest
    const owned: OwnedAccount[] = []
    for (const owner of this.#owners()) {
      const name = `${owner.namespace}/${owner.id}`
      const made = this.#made.get(name) ?? (await this.#make(keys, owner))
      this.#made.set(name, made)
      owned.push({ owner, ...made })
    }
    if (this.#made.size > 2 * owned.length) this.#made.clear()
    return owned
  }

  async #make(keys: AccountKeys, owner: AccountOwner): Promise<TenantAccount> {
    // Takes milliseconds each, and the first time there are as many as namespaces.
    await new Promise((resolve) => setImmediate(resolve))
    return buildTenantAccount(keys, owner, { limits: this.#o.limits, issuedAtS: 1 })
  }

  #serverTexts(
    keys: AccountKeys,
    accounts: readonly OwnedAccount[],
    present: SecretTexts,
  ): SecretTexts {
    const { clusterHosts: hosts } = this.#o
    const { certificate, key } = this.#certificate(keys, present)
    return {
      [TENANCY_FILE]: buildAccountsConfig(keys, accounts.slice(0, MOST_PRELOADED)),
      ...(hosts.length > 1 && { [clusterFile(hosts.length)]: buildClusterConfig(keys, hosts) }),
      [CERTIFICATE_FILES.certificate]: certificate,
      [CERTIFICATE_FILES.key]: key,
      [CERTIFICATE_FILES.authorities]: keys.authority.certificate,
    }
  }

  #certificate({ authority }: AccountKeys, present: SecretTexts): CertificatePair {
    const { urls, clusterHosts, clock } = this.#o
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
  async #tellServers(keys: AccountKeys, accounts: readonly OwnedAccount[]): Promise<number> {
    const { clock, log } = this.#o
    const link = await this.#connect(keys)
    if (link === undefined) return CONNECT_MS
    try {
      await this.#tellAccounts(link, keys, accounts)
      if (clock.epochMs() >= this.#reloadAtMs) {
        serversReloaded(log, await link.reloadServers())
        this.#reloadAtMs = clock.epochMs() + RELOAD_MS
      }
    } catch (error) {
      // Whatever it is, the next attempt begins with a connection, and looks at everything.
      await link.close()
      throw error
    }
    return COMPARE_MS
  }

  async #tellAccounts(
    link: SystemLink,
    keys: AccountKeys,
    wanted: readonly OwnedAccount[],
  ): Promise<void> {
    const { clock, limits, log } = this.#o
    const known = new Set(await link.listAccounts())
    const changed = wanted.filter(
      ({ account, jwt }) => this.#told.get(account) !== jwt || !known.has(account),
    )
    for (const { owner, account, jwt } of changed) {
      const issuedAtS = Math.floor(clock.epochMs() / 1000)
      await link.updateAccount(buildTenantAccount(keys, owner, { limits, issuedAtS }).jwt)
      this.#told.set(account, jwt)
    }
    const kept = new Set([keys.system.publicKey, ...wanted.map(({ account }) => account)])
    const gone = [...known].filter((account) => !kept.has(account))
    if (gone.length > 0) await link.removeAccounts(buildRemoval(keys, gone))
    for (const account of gone) this.#told.delete(account)
    if (changed.length + gone.length > 0) accountsChanged(log, changed.length, gone.length)
  }

  async #connect({ system, authority }: AccountKeys): Promise<SystemLink | undefined> {
    if (this.#link !== undefined) return this.#link
    const { urls, clock, log, openLink = openSystemLink } = this.#o
    this.#told.clear()
    this.#reloadAtMs = 0
    const onLost = (): void => {
      this.#link = undefined
      this.#o.onLost()
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

  #own(name: string): ObjectKey {
    return { namespace: this.#o.namespace, name }
  }
}

function idOf(labels: Readonly<Record<string, string>> | undefined): string | undefined {
  const id = labels?.[ACCOUNT_LABEL]
  return id !== undefined && ACCOUNT_ID_PATTERN.test(id) ? id : undefined
}
