import type { Clock, Logger } from '@tutti/chassis'
import type { CallOptions, ObjectKey, OwnerReference } from '@tutti/kube'
import { FIELD_MANAGER } from '../runtime/children.ts'
import { TerminalError } from '../runtime/terminal-error.ts'
import { credentialIssued, keysMade, signingKeyRotated } from './log-events.ts'
import {
  buildClusterConfig,
  buildTenancyConfig,
  clusterFile,
  TENANCY_FILE,
} from './server-config.ts'
import { planRotation, ROTATION_STEPS, toRotationStep } from './signing-rotation.ts'
import {
  type CredentialIssuer,
  createTenancyKeys,
  DamagedKeysError,
  parseCredentialIssuer,
  parseTenancyKeys,
  type TenancyKeys,
  toCredentialIssuer,
  toSecretTexts,
} from './tenancy-keys.ts'
import {
  createSecret,
  type DesiredSecret,
  type FoundSecret,
  findSecret,
  isAsDesired,
  replaceTexts,
  type SecretClient,
} from './tenancy-secrets.ts'
import { type CredentialOptions, checkCredentials, issueCredentials } from './user-credentials.ts'

/** Names of the Secrets. */
export const NATS_SECRETS = {
  /** The keys, in the operator's namespace. Never overwritten, never made again while it is there. */
  keys: 'tutti-nats-operator',
  /** What the servers' configuration includes, in the operator's namespace. Follows from the keys. */
  server: 'tutti-nats-server',
  /** The credential of a namespace, there. */
  credentials: 'tutti-nats',
} as const

/** Keys of the Secret `tutti-nats`: the credentials file, and the authorities of external servers if they were given. */
export const CREDENTIAL_FILES = { credentials: 'nats.creds', authorities: 'ca.crt' } as const

/** On the Secret of the keys: the step of a rotation that is wanted, see planRotation. */
export const ROTATION_ANNOTATION = 'tutti.dev/signing-key-rotation'

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

export interface NatsTenancyOptions {
  readonly client: SecretClient
  /** The operator's. */
  readonly namespace: string
  readonly servers: NatsServers
  /** First token of all subjects, as PREFIX_PATTERN. */
  readonly prefix: string
  /** Of a credential; it is renewed when half of it is over. */
  readonly lifetimeMs: number
  readonly clock: Clock
  readonly log: Logger
}

/** What all credentials are made with. */
interface Issuance {
  readonly issuer: CredentialIssuer
  /** PEM. */
  readonly authorities?: string
}

/**
 * Keeps the namespaces apart on the broker: one account, whose users are the namespaces, each permitted its own subjects. The
 * methods are idempotent, write only what differs, and throw KubeErrors of the client, and TerminalErrors for what a person
 * has to set right: their messages say which Secret, and what is wanted there.
 */
export class NatsTenancy {
  readonly #o: NatsTenancyOptions

  constructor(o: NatsTenancyOptions) {
    this.#o = o
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
   * @returns the public key that signs credentials now: those of another have to be made anew, by `ensureTenant`.
   */
  async ensureServers(o: CallOptions = {}): Promise<string> {
    const { servers } = this.#o
    if (servers.kind === 'external') {
      return (await this.#readIssuer(servers, o)).issuer.signing.publicKey
    }
    const { keys, refusal } = await this.#rotate(await this.#ensureKeys(o), o)
    const hosts = servers.clusterHosts
    const texts = {
      [TENANCY_FILE]: buildTenancyConfig(keys),
      ...(hosts.length > 1 && { [clusterFile(hosts.length)]: buildClusterConfig(keys, hosts) }),
    }
    const key = this.#own(NATS_SECRETS.server)
    const found = await findSecret(this.#o.client, key, o)
    await this.#writeTexts(found, { key, component: 'nats', texts }, o)
    // The servers get what they need even if a rotation is refused.
    if (refusal !== undefined) throw refusal
    return keys.signing.current.publicKey
  }

  /**
   * Ensures the credential of a namespace.
   *
   * @returns when it has to be looked at again, in milliseconds since the epoch.
   */
  async ensureTenant(
    namespace: string,
    o: CallOptions & { readonly owners?: readonly OwnerReference[] } = {},
  ): Promise<{ readonly renewAtMs: number }> {
    const { client, clock, log, prefix, lifetimeMs } = this.#o
    const { issuer, authorities } = await this.#issuance(o)
    const key = { namespace, name: NATS_SECRETS.credentials }
    const found = await findSecret(client, key, o)
    const nowMs = clock.epochMs()
    const wanted: CredentialOptions = { issuer, prefix, namespace, lifetimeMs, nowMs }
    const present = found?.texts[CREDENTIAL_FILES.credentials]
    const checked = checkCredentials(present, wanted)
    const isKept = checked.fresh && present !== undefined
    const texts = {
      [CREDENTIAL_FILES.credentials]: isKept ? present : issueCredentials(wanted),
      ...(authorities !== undefined && { [CREDENTIAL_FILES.authorities]: authorities }),
    }
    const { owners } = o
    const desired = { key, component: 'credentials', texts, ...(owners && { owners }) } as const
    await this.#writeTexts(found, desired, o)
    if (checked.fresh) return { renewAtMs: checked.renewAtMs }
    credentialIssued(log, namespace, checked.why)
    return { renewAtMs: nowMs + lifetimeMs / 2 }
  }

  async #issuance(o: CallOptions): Promise<Issuance> {
    const { servers } = this.#o
    if (servers.kind === 'external') return await this.#readIssuer(servers, o)
    return { issuer: toCredentialIssuer((await this.#ensureKeys(o)).keys) }
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

  async #ensureKeys(o: CallOptions): Promise<FoundKeys> {
    const key = this.#own(NATS_SECRETS.keys)
    const found = (await findSecret(this.#o.client, key, o)) ?? (await this.#makeKeys(key, o))
    return { found, keys: reading(key, () => parseTenancyKeys(found.texts)) }
  }

  async #makeKeys(key: ObjectKey, o: CallOptions): Promise<FoundSecret> {
    const { client, log } = this.#o
    const server = this.#own(NATS_SECRETS.server)
    if ((await findSecret(client, server, o)) !== undefined) {
      // Another process may have made both since the keys were looked for.
      const made = await findSecret(client, key, o)
      if (made !== undefined) return made
      // New keys would cut off every pod there is.
      const wanted = `restore it, or delete ${nameOf(server)} too to begin with new keys`
      throw new TerminalError(
        `${nameOf(key)} is missing, but what was made from it is there: ${wanted}`,
      )
    }
    const texts = toSecretTexts(createTenancyKeys())
    const made = await createSecret(client, { key, component: 'nats', texts }, o)
    keysMade(log, nameOf(key))
    return made
  }

  async #rotate({ found, keys }: FoundKeys, o: CallOptions): Promise<Rotated> {
    const asked = found.annotations[ROTATION_ANNOTATION]
    if (asked === undefined) return { keys }
    const refused = (why: string): Rotated => ({
      keys,
      refusal: new TerminalError(`${nameOf(found.key)}, annotation ${ROTATION_ANNOTATION}: ${why}`),
    })
    const step = toRotationStep(asked)
    if (step === undefined) {
      const got = JSON.stringify(asked.slice(0, 64))
      return refused(`got ${got}, want one of ${ROTATION_STEPS.join(', ')}`)
    }
    const plan = planRotation(keys, step)
    if (plan.kind === 'refused') return refused(plan.message)
    if (plan.kind === 'done') return { keys }
    await replaceTexts(this.#o.client, found, { texts: toSecretTexts(plan.keys) }, o)
    signingKeyRotated(this.#o.log, step)
    return { keys: plan.keys }
  }

  async #writeTexts(
    found: FoundSecret | undefined,
    desired: DesiredSecret,
    o: CallOptions,
  ): Promise<void> {
    const there = found ?? (await createSecret(this.#o.client, desired, o))
    if (isAsDesired(there, desired)) return
    if (!there.isOurs) {
      const label = `the label app.kubernetes.io/managed-by: ${FIELD_MANAGER}`
      throw new TerminalError(
        `${nameOf(there.key)} is not the operator's, it lacks ${label}: delete it`,
      )
    }
    await replaceTexts(this.#o.client, there, desired, o)
  }

  #own(name: string): ObjectKey {
    return { namespace: this.#o.namespace, name }
  }
}

interface FoundKeys {
  readonly found: FoundSecret
  readonly keys: TenancyKeys
}

interface Rotated {
  readonly keys: TenancyKeys
  /** Why what was asked for is not done. */
  readonly refusal?: TerminalError
}

function nameOf(key: ObjectKey): string {
  return `Secret "${key.namespace}/${key.name}"`
}

function reading<T>(key: ObjectKey, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof DamagedKeysError)) throw error
    throw new TerminalError(`${nameOf(key)}, ${error.message}`, { cause: error })
  }
}
