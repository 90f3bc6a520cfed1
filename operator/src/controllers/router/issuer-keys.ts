import type { Clock } from '@tutti/chassis'
import type { CancelSignal } from '@tutti/errors'
import type { Client, TokenIssuer } from '@tutti/kube'

/** Issuers change their keys rarely, and keep the former ones until their tokens have expired. */
export const ISSUER_AGED_MS = 300_000

/** The issuer of ServiceAccount tokens, read from the API server and kept for a while. */
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

  /** The keys of before if they cannot be read now. @throws KubeError if they were never read. */
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
