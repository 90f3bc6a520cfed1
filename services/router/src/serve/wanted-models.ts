import { randomUUID } from 'node:crypto'
import type { WantedByRouter } from '@tutti/api'
import type { Clock } from '@tutti/chassis'

/** A question is answered after this time at the latest, long before its connection counts as silent. */
const WAIT_MS = 10_000
/** Questions that wait; further ones end the wait of the oldest. There is one operator. */
const MOST_QUESTIONS = 16

interface Question {
  readonly answer: () => void
}

/**
 * Answers the operator's question for which Models requests wait. A question that names the last answer waits until the Models are
 * others, so that the operator knows at once and asks seldom.
 */
export class WantedModels {
  readonly #clock: Clock
  readonly #list: () => readonly string[]
  readonly #process = randomUUID()
  readonly #questions = new Set<Question>()
  #count = 0
  #models: readonly string[] = []
  #isDue = false

  /** @param o.list - lists the Models for which requests wait now, in order. */
  constructor(o: { readonly clock: Clock; readonly list: () => readonly string[] }) {
    this.#clock = o.clock
    this.#list = o.list
  }

  /** Compares the Models with those of the last answer, soon: changes come in crowds. */
  changed(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#compare()
    })
  }

  /** Answers a question; `seen` of its query names the answer that the asker has. */
  async answer(query: URLSearchParams): Promise<WantedByRouter> {
    this.#compare()
    if (query.get('seen') === this.#seen) await this.#wait()
    return { seen: this.#seen, models: [...this.#models] }
  }

  get #seen(): string {
    return `${this.#process}-${this.#count}`
  }

  #wait(): Promise<void> {
    const [oldest] = this.#questions
    if (oldest !== undefined && this.#questions.size >= MOST_QUESTIONS) oldest.answer()
    return new Promise((resolve) => {
      const answer = (): void => {
        stopTimer()
        this.#questions.delete(question)
        resolve()
      }
      const stopTimer = this.#clock.setTimer(WAIT_MS, answer)
      const question = { answer }
      this.#questions.add(question)
    })
  }

  /** Ends the wait of all questions. */
  close(): void {
    this.#answerAll()
  }

  #answerAll(): void {
    for (const { answer } of this.#questions) answer()
  }

  #compare(): void {
    const models = this.#list()
    const isSame = models.length === this.#models.length
    if (isSame && models.every((name, i) => name === this.#models[i])) return
    this.#models = models
    this.#count += 1
    this.#answerAll()
  }
}
