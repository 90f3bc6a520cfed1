/** Lines that are remembered; a bound, because what they are about comes from outside. */
const MAX_LOGGED = 1024

/** Remembers what was logged, for lines that come once for each subject. */
export class LoggedOnce {
  readonly #logged = new Set<string>()

  /** True for the first time, or for the first after very many others. @param subject - as JSON compares it. */
  isNew(subject: unknown): boolean {
    const key = JSON.stringify(subject)
    if (this.#logged.has(key)) return false
    if (this.#logged.size >= MAX_LOGGED) this.#logged.clear()
    this.#logged.add(key)
    return true
  }
}
