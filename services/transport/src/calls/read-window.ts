import type { EndpointSettings } from '../endpoint-settings.ts'

/** How far the responses of one call may be ahead of the caller's reader: in number, as it allows, and in bytes. */
export class ReadWindow {
  readonly #settings: EndpointSettings
  /** Responses that the caller allowed at first. What it allows beyond them it has read. */
  readonly #offered: number
  /** Responses that it has allowed in all. */
  #granted: number
  #sent = 0
  /** Bytes of outputs of each response that is sent and that the caller has not read, as far as it has said so. */
  readonly #unread: number[] = []
  /** Their sum. */
  #unreadBytes = 0

  constructor(offered: number, settings: EndpointSettings) {
    this.#settings = settings
    this.#offered = offered
    this.#granted = offered
  }

  /** Responses that were sent. */
  get sent(): number {
    return this.#sent
  }

  /** True if one more may be sent. */
  get isOpen(): boolean {
    const { responseBytes, heldResponses } = this.#settings
    // A caller may grant any number of responses, but not that we remember them all.
    const isAhead = this.#unreadBytes >= responseBytes || this.#unread.length >= heldResponses
    return this.#sent < this.#granted && !isAhead
  }

  add(bytes: number): void {
    this.#unread.push(bytes)
    this.#unreadBytes += bytes
    this.#sent += 1
  }

  /**
   * Takes the caller's word that it allows `responses` in all.
   * @returns the index of the first response that it has not read; undefined if it allowed as many before.
   */
  grant(responses: number): number | undefined {
    if (responses <= this.#granted) return undefined
    this.#granted = responses
    const read = responses - this.#offered
    while (this.#sent - this.#unread.length < read) {
      const bytes = this.#unread.shift()
      if (bytes === undefined) break
      this.#unreadBytes -= bytes
    }
    return read
  }
}
