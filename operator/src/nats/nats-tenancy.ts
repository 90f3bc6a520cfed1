import type { CallOptions, ObjectKey } from '@tutti/kube'
import { TerminalError } from '../runtime/terminal-error.ts'
import { OwnKeys, reading } from './own-keys.ts'
import {
  buildClusterConfig,
  buildTenancyConfig,
  clusterFile,
  TENANCY_FILE,
} from './server-config.ts'
import {
  createTenancyKeys,
  parseCredentialIssuer,
  parseTenancyKeys,
  type TenancyKeys,
  toCredentialIssuer,
  toSecretTexts,
} from './tenancy-keys.ts'
import { findSecret, nameOf, writeSecret } from './tenancy-secrets.ts'
import {
  CREDENTIAL_FILES,
  type EnsureTenantOptions,
  ensureTenantSecret,
  type Issuance,
  type TenantSecretOptions,
} from './tenant-secret.ts'

/** Names of the Secrets. */
export const NATS_SECRETS = {
  /** The keys, in the operator's namespace. Never overwritten, never made again while it is there. */
  keys: 'tutti-nats-operator',
  /** What the servers' configuration includes, in the operator's namespace. Follows from the keys. */
  server: 'tutti-nats-server',
  /** The credential of a namespace, there. */
  credentials: 'tutti-nats',
} as const

/** Whose servers they are. */
export type NatsServers =
  | {
      /** The chart's: the operator rules whom they let in. */
      readonly kind: 'own'
      /** `host:port` of each one's cluster port, if they are a cluster. */
      readonly clusterHosts: readonly string[]
    }
  | {
      /** Somebody else's: a Secret in the operator's namespace has the account and a signing key of it. */
      readonly kind: 'external'
      readonly issuerSecret: string
      /** It has the authorities of the servers' certificates too. */
      readonly hasAuthorities: boolean
    }

export interface NatsTenancyOptions extends TenantSecretOptions {
  /** The operator's. */
  readonly namespace: string
  readonly servers: NatsServers
}

/**
 * Keeps the namespaces apart on the broker: one account, whose users are the namespaces, each permitted its own subjects. The
 * methods are idempotent, write only what differs, and throw KubeErrors of the client, and TerminalErrors for what a person
 * has to set right: their messages say which Secret, and what is wanted there.
 */
export class NatsTenancy {
  readonly #o: NatsTenancyOptions
  readonly #keys: OwnKeys<TenancyKeys>

  constructor(o: NatsTenancyOptions) {
    this.#o = o
    this.#keys = new OwnKeys({
      ...o,
      keys: this.#own(NATS_SECRETS.keys),
      server: this.#own(NATS_SECRETS.server),
      create: createTenancyKeys,
      parse: parseTenancyKeys,
      toTexts: toSecretTexts,
    })
  }

  /** Names of the Secrets, in the operator's namespace, that `ensureServers` looks at. */
  get secretNames(): readonly string[] {
    const { servers } = this.#o
    if (servers.kind === 'external') return [servers.issuerSecret]
    return [NATS_SECRETS.keys, NATS_SECRETS.server]
  }

  /**
   * Ensures the keys and the servers' configuration, and takes a step of a rotation that is asked for.
   *
   * @returns issuer: the public key that signs credentials now; those of another have to be made anew, by `ensureTenant`.
   */
  async ensureServers(o: CallOptions = {}): Promise<{ readonly issuer: string }> {
    const { servers } = this.#o
    if (servers.kind === 'external') {
      return { issuer: (await this.#readIssuer(servers, o)).issuer.signing.publicKey }
    }
    const { keys } = await this.#keys.rotate(o)
    const hosts = servers.clusterHosts
    const texts = {
      [TENANCY_FILE]: buildTenancyConfig(keys),
      ...(hosts.length > 1 && { [clusterFile(hosts.length)]: buildClusterConfig(keys, hosts) }),
    }
    const key = this.#own(NATS_SECRETS.server)
    const found = await findSecret(this.#o.client, key, o)
    await writeSecret(this.#o.client, found, { key, component: 'nats', texts }, o)
    return { issuer: keys.signing.current.publicKey }
  }

  /**
   * Ensures the credential of a namespace.
   *
   * @returns when it has to be looked at again, in milliseconds since the epoch.
   */
  async ensureTenant(
    namespace: string,
    o: EnsureTenantOptions = {},
  ): Promise<{ readonly renewAtMs: number }> {
    const issuance = await this.#issuance(o)
    const key = { namespace, name: NATS_SECRETS.credentials }
    const found = await findSecret(this.#o.client, key, o)
    return await ensureTenantSecret(this.#o, { ...issuance, key, found }, o)
  }

  async #issuance(o: CallOptions): Promise<Issuance> {
    const { servers } = this.#o
    if (servers.kind === 'external') return await this.#readIssuer(servers, o)
    return { issuer: toCredentialIssuer(await this.#keys.ensure(o)) }
  }

  async #readIssuer(
    { issuerSecret, hasAuthorities }: Extract<NatsServers, { kind: 'external' }>,
    o: CallOptions,
  ): Promise<Issuance> {
    const key = this.#own(issuerSecret)
    const found = await findSecret(this.#o.client, key, o)
    if (found === undefined) throw new TerminalError(`${nameOf(key)} is missing`)
    const issuer = reading(key, () => parseCredentialIssuer(found.texts))
    const authorities = found.texts[CREDENTIAL_FILES.authorities]
    // Pods are told of the file by flag: they end without it, and would not look at it.
    if ((authorities !== undefined) !== hasAuthorities) {
      const [got, want] = hasAuthorities ? ['is missing', 'with'] : ['is there', 'without']
      throw new TerminalError(
        `${nameOf(key)}, key "${CREDENTIAL_FILES.authorities}" ${got}, want that ${want} --nats-private-authority`,
      )
    }
    return { issuer, ...(authorities !== undefined && { authorities }) }
  }

  #own(name: string): ObjectKey {
    return { namespace: this.#o.namespace, name }
  }
}
