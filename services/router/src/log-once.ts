/** Lines that are remembered; a bound, because what they are about comes from outside. */
const MAX_LOGGED = 1024

/** Remembers what was logged, for lines that come once for each subject. */
export class LoggedOnce {
  readonly #logged = new Set<string>()

  /**
   * Remembers a subject, and tells whether it is new. After very many subjects all are forgotten.
   *
   * @param subject - compared by its JSON.
   */
  isNew(subject: unknown): boolean {
    const key = JSON.stringify(subject)
    if (this.#logged.has(key)) return false
    if (this.#logged.size >= MAX_LOGGED) this.#logged.clear()
    this.#logged.add(key)
    return true
  }
}
