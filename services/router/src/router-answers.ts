import type { PinnedVersion } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { AnswerQuestion, Question } from '@tutti/transport'

/** Makes the answers to what steps ask a router, for their models and for what they replaced. */
export function createRouterAnswers(o: {
  isModelReady(model: string, version: string): Promise<boolean>
  /** True if no request can ask the replica for the version any more. */
  isUnpinned(replica: string, pin: PinnedVersion): boolean
}): AnswerQuestion {
  return async (question, argument) => {
    const said = new Argument(question, argument)
    switch (question) {
      case 'ready':
        return await o.isModelReady(said.text('model'), said.text('version'))
      case 'unpinned': {
        const replica = said.text('replica')
        return said.pins('pins').map((pin) => o.isUnpinned(replica, pin))
      }
      case 'describe':
      case 'statistics':
        break
    }
    throw new ServeError('UNSUPPORTED', `question '${question}' is not for a router`)
  }
}

/** A question's argument, which comes from another process. */
class Argument {
  readonly #question: Question
  readonly #fields: ReadonlyMap<string, unknown>

  constructor(question: Question, argument: unknown) {
    this.#question = question
    const isObject = typeof argument === 'object' && argument !== null
    this.#fields = new Map(isObject ? Object.entries(argument) : [])
  }

  text(field: string): string {
    const value = this.#fields.get(field)
    if (typeof value === 'string') return value
    throw this.#malformed(field, value, 'a text')
  }

  /** A list of [model, version, revision]. */
  pins(field: string): readonly PinnedVersion[] {
    const value = this.#fields.get(field)
    const list: readonly unknown[] = Array.isArray(value) ? value : []
    const pins = list.flatMap((pin): PinnedVersion[] => {
      if (!Array.isArray(pin)) return []
      const [model, version, revision]: readonly unknown[] = pin
      const isPin =
        typeof model === 'string' && typeof version === 'number' && typeof revision === 'string'
      return isPin ? [{ model, version, revision }] : []
    })
    if (Array.isArray(value) && pins.length === list.length) return pins
    throw this.#malformed(field, value, 'a list of [model, version, revision]')
  }

  #malformed(field: string, value: unknown, want: string): ServeError {
    const text = `question '${this.#question}': ${field} is ${typeof value}, want ${want}`
    return new ServeError('MALFORMED_MESSAGE', text, { details: { field } })
  }
}
