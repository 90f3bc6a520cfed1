import type { Clock } from '@tutti/chassis'
import type { CancelSignal } from '@tutti/errors'
import type { Client, TokenIssuer } from '@tutti/kube'

/** The time for which issuer keys are kept. Issuers change keys rarely, and accept the former ones until their tokens expire. */
export const ISSUER_AGED_MS = 300_000

/** Reads the issuer of ServiceAccount tokens from the API server and keeps it for ISSUER_AGED_MS. */
export class IssuerKeys {
  readonly #client: Pick<Client, 'tokenIssuer'>
  readonly #clock: Pick<Clock, 'now'>
  #known: TokenIssuer | undefined
  #readAt = Number.NEGATIVE_INFINITY

  constructor({
    client,
    clock,
  }: {
    readonly client: Pick<Client, 'tokenIssuer'>
    readonly clock: Pick<Clock, 'now'>
  }) {
    this.#client = client
    this.#clock = clock
  }

  /** Returns the issuer, or the one read before if a new read fails. @throws KubeError if no read ever succeeded. */
  async read(signal: CancelSignal): Promise<TokenIssuer> {
    if (this.#known !== undefined && this.#clock.now() - this.#readAt < ISSUER_AGED_MS)
      return this.#known
    try {
      this.#known = await this.#client.tokenIssuer({ signal })
      this.#readAt = this.#clock.now()
    } catch (error) {
      if (this.#known === undefined) throw error
    }
    return this.#known
  }
}
