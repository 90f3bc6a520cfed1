import type { CallOptions, ObjectKey } from '@tutti/kube'
import { TerminalError } from '../runtime/terminal-error.ts'
import { reading } from './own-keys.ts'
import { parseCredentialIssuer } from './tenancy-keys.ts'
import { findSecret, NATS_SECRETS, nameOf } from './tenancy-secrets.ts'
import {
  CREDENTIAL_FILES,
  type EnsureTenantOptions,
  ensureTenantSecret,
  type Issuance,
  type TenantSecretOptions,
} from './tenant-secret.ts'

/** NATS servers that others run. A Secret in the operator's namespace holds the account and a signing key for its users. */
export interface ExternalServers {
  readonly kind: 'external'
  readonly issuerSecret: string
  /** True if the Secret also holds the authorities of the servers' certificates. */
  readonly hasAuthorities: boolean
}

export interface ExternalTenancyOptions extends TenantSecretOptions, Omit<ExternalServers, 'kind'> {
  /** Namespace of the operator. */
  readonly namespace: string
}

/**
 * Isolates namespaces on NATS servers that others run. All namespaces share one account, and each is a user that may use only its
 * own subjects. The methods have the contract of AccountTenancy.
 */
export class ExternalTenancy {
  readonly #options: ExternalTenancyOptions

  constructor(o: ExternalTenancyOptions) {
    this.#options = o
  }

  get secretNames(): readonly string[] {
    return [this.#options.issuerSecret]
  }

  /** Reads the key that signs credentials from its Secret. @returns the public key. */
  async ensureServers(o: CallOptions = {}): Promise<{ readonly issuer: string }> {
    return { issuer: (await this.#readIssuer(o)).issuer.signing.publicKey }
  }

  async ensureTenant(
    namespace: string,
    o: EnsureTenantOptions = {},
  ): Promise<{ readonly renewAtMs: number }> {
    const issuance = await this.#readIssuer(o)
    const key = { namespace, name: NATS_SECRETS.credentials }
    const found = await findSecret(this.#options.client, key, o)
    return await ensureTenantSecret(this.#options, { ...issuance, key, found }, o)
  }

  async #readIssuer(o: CallOptions): Promise<Issuance> {
    const { issuerSecret, hasAuthorities } = this.#options
    const key: ObjectKey = { namespace: this.#options.namespace, name: issuerSecret }
    const found = await findSecret(this.#options.client, key, o)
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
}
