import type { Clock, Logger } from '@tutti/chassis'
import type { CallOptions, ObjectKey } from '@tutti/kube'
import { TerminalError } from '../runtime/terminal-error.ts'
import {
  type AccountKeys,
  createAccountKeys,
  parseAccountKeys,
  toAccountTexts,
} from './account-keys.ts'
import { keysMade, rotationRefused, signingKeyRotated } from './log-events.ts'
import { planRotation } from './signing-rotation.ts'
import { DamagedKeysError } from './tenancy-keys.ts'
import {
  createSecret,
  type FoundSecret,
  findSecret,
  NATS_SECRETS,
  nameOf,
  replaceTexts,
  type SecretClient,
} from './tenancy-secrets.ts'

/** The annotation of the keys' Secret with the requested step of a rotation; see planRotation. */
export const ROTATION_ANNOTATION = 'tutti.dev/signing-key-rotation'

export interface OwnKeysOptions {
  readonly client: SecretClient
  /** Namespace of the operator. */
  readonly namespace: string
  /** Lifetime of a credential, in milliseconds. */
  readonly lifetimeMs: number
  readonly clock: Clock
  readonly log: Logger
}

/** The keys after a call of `rotate`. */
export interface Rotated {
  readonly keys: AccountKeys
  /** True if this call took a step of the rotation. */
  readonly isRotated: boolean
}

export interface RotateOptions extends CallOptions {
  /** Function that returns true if a server knows this public key. */
  readonly isNextKnown: (next: string) => boolean
}

/** The operator's own keys, which are stored in a Secret. They are created once and rotated on request by an annotation. */
export class OwnKeys {
  readonly #options: OwnKeysOptions
  readonly #key: ObjectKey
  /** The refusal that was logged last, so that each is logged once. */
  #refusal: string | undefined

  constructor(o: OwnKeysOptions) {
    this.#options = o
    this.#key = { namespace: o.namespace, name: NATS_SECRETS.keys }
  }

  /**
   * Reads the keys, or creates them at the first start.
   *
   * @throws KubeError; TerminalError if the Secret is damaged or was deleted.
   */
  async ensure(o: CallOptions): Promise<AccountKeys> {
    return (await this.#ensure(o)).keys
  }

  /** Ensures the keys and takes the requested step of a rotation, if it is due. A refusal is logged once. @throws as `ensure`. */
  async rotate({ isNextKnown, ...o }: RotateOptions): Promise<Rotated> {
    const { found, keys } = await this.#ensure(o)
    const asked = found.annotations[ROTATION_ANNOTATION]
    if (asked === undefined) return { keys, isRotated: false }
    const { client, clock, lifetimeMs, log } = this.#options
    const { next } = keys.signing
    const plan = planRotation(keys, asked, {
      nowMs: clock.epochMs(),
      lifetimeMs,
      isNextKnown: next !== undefined && isNextKnown(next.publicKey),
    })
    const refusal = plan.kind === 'refused' ? plan.message : undefined
    if (refusal !== undefined && refusal !== this.#refusal) {
      rotationRefused(log, `${nameOf(found.key)}, annotation ${ROTATION_ANNOTATION}: ${refusal}`)
    }
    this.#refusal = refusal
    if (plan.kind !== 'change') return { keys, isRotated: false }
    await replaceTexts(client, found, { texts: toAccountTexts(plan.keys) }, o)
    signingKeyRotated(log, plan.step)
    return { keys: plan.keys, isRotated: true }
  }

  async #ensure(
    o: CallOptions,
  ): Promise<{ readonly found: FoundSecret; readonly keys: AccountKeys }> {
    const found = (await findSecret(this.#options.client, this.#key, o)) ?? (await this.#make(o))
    return { found, keys: reading(this.#key, () => parseAccountKeys(found.texts)) }
  }

  async #make(o: CallOptions): Promise<FoundSecret> {
    const { client, clock, log, namespace } = this.#options
    const key = this.#key
    const server = { namespace, name: NATS_SECRETS.server }
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
    const texts = toAccountTexts(createAccountKeys(clock.epochMs()))
    const made = await createSecret(client, { key, component: 'nats', texts }, o)
    keysMade(log, nameOf(key))
    return made
  }
}

/**
 * Runs `parse` and turns its DamagedKeysError into a TerminalError that names the Secret.
 *
 * @throws TerminalError; others of `parse`
 */
export function reading<T>(key: ObjectKey, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof DamagedKeysError)) throw error
    throw new TerminalError(`${nameOf(key)}, ${error.message}`, { cause: error })
  }
}
