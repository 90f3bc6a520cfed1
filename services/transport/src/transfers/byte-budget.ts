/** Bounds bytes in all and for each sender, so that no single sender can take everything. */
export class ByteBudget {
  readonly #total: number
  readonly #perSender: number
  readonly #taken = new Map<string, number>()
  #inUse = 0

  constructor(total: number, perSender: number) {
    this.#total = total
    this.#perSender = Math.min(total, perSender)
  }

  get inUse(): number {
    return this.#inUse
  }

  /** Bytes that a sender who has none yet could take now. */
  get free(): number {
    return Math.min(this.#perSender, this.#total - this.#inUse)
  }

  /** The most that one sender may ever have. */
  get largest(): number {
    return this.#perSender
  }

  /** Takes bytes for a sender. @returns false, and takes nothing, if that would be over a bound. */
  take(sender: string, bytes: number): boolean {
    if (bytes === 0) return true
    const taken = (this.#taken.get(sender) ?? 0) + bytes
    if (taken > this.#perSender || this.#inUse + bytes > this.#total) return false
    this.#taken.set(sender, taken)
    this.#inUse += bytes
    return true
  }

  give(sender: string, bytes: number): void {
    if (bytes === 0) return
    const left = (this.#taken.get(sender) ?? 0) - bytes
    if (left > 0) this.#taken.set(sender, left)
    else this.#taken.delete(sender)
    this.#inUse -= bytes
  }
}
