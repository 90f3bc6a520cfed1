import { parseDescriptionJson, parseStatisticsJson, type StepDescription } from '@tutti/api'
import { backoffMs, type Clock, type Logger } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { MemberQuestions } from '@tutti/transport'
import { describeFailed, stepAnnounced, stepRemoved } from '../log-events.ts'
import type { ServedView } from '../view/served-view.ts'
import type { Revisions, StepQuestions } from '../view/step-members.ts'
import { DescriptionLimit } from './description-limit.ts'

/** Never aborts: questions have a time of their own. */
const UNLIMITED = new AbortController().signal
/** A step gives its model 5 seconds for that. */
const READINESS_MS = 7000

export interface StepLinkOptions {
  readonly view: Pick<ServedView, 'describe' | 'announce' | 'remove'>
  /** Members of the broker. Questions wait until the broker is joined. */
  readonly members: Promise<MemberQuestions>
  readonly clock: Clock
  readonly log: Logger
  readonly random?: () => number
  /**
   * Most questions that are open at the same time. Default: 4, because descriptions may be large, and many steps may come at
   * once.
   */
  readonly parallelism?: number
}

interface Known {
  /** Aborts the open question, or takes back the wait for the next one. */
  stop: () => void
  failures: number
  isDescribed: boolean
}

const DEFAULT_PARALLELISM = 4
const BACKOFF = { firstMs: 100, longestMs: 5000 }

/**
 * Keeps a router's view of the steps of the broker up to date. When a step changes, it is asked what it serves. This is
 * level-based: any number of changes leads to one question, and an answer to a question from before the last change is not
 * used.
 */
export class StepLink {
  readonly #options: StepLinkOptions
  readonly #limit = new DescriptionLimit()
  readonly #steps = new Map<string, Known>()
  /** Replicas to ask, in turn; a set, so that each waits once. */
  readonly #due = new Set<string>()
  #open = 0

  constructor(o: StepLinkOptions) {
    this.#options = o
  }

  /** True if every step that is there has been described. */
  get isSettled(): boolean {
    return [...this.#steps.values()].every(({ isDescribed }) => isDescribed)
  }

  changed(replica: string, revisions: Revisions): void {
    stepAnnounced(this.#options.log, replica, revisions.length)
    this.#options.view.announce(replica, revisions)
    this.refresh(replica)
  }

  /** Asks a replica for its description anew, because the known description is out of date. */
  refresh(replica: string): void {
    const known = this.#steps.get(replica)
    known?.stop()
    const isDescribed = known?.isDescribed ?? false
    this.#steps.set(replica, { stop: () => {}, failures: 0, isDescribed })
    this.#due.add(replica)
    this.#ask()
  }

  gone(replica: string, error: ServeError): void {
    stepRemoved(this.#options.log, replica, error)
    this.#forget(replica)
    this.#limit.remove(replica)
    this.#options.view.remove(replica)
  }

  close(): void {
    for (const replica of this.#steps.keys()) this.#forget(replica)
  }

  #forget(replica: string): void {
    this.#steps.get(replica)?.stop()
    this.#steps.delete(replica)
    this.#due.delete(replica)
  }

  #ask(): void {
    const bound = this.#options.parallelism ?? DEFAULT_PARALLELISM
    for (const replica of this.#due) {
      if (this.#open >= bound) return
      this.#due.delete(replica)
      const known = this.#steps.get(replica)
      if (known !== undefined) void this.#question(replica, known)
    }
  }

  async #question(replica: string, known: Known): Promise<void> {
    this.#open += 1
    const cancel = new AbortController()
    known.stop = () => cancel.abort(new ServeError('CANCELLED', 'the question is out of date'))
    const { members, view } = this.#options
    try {
      const description = await this.#describe(await members, replica, cancel.signal)
      if (this.#steps.get(replica) === known) {
        known.isDescribed = true
        view.describe(description, remoteStep(members, replica))
      }
    } catch (error) {
      if (this.#steps.get(replica) === known) this.#retry(replica, known, error)
    }
    this.#open -= 1
    this.#ask()
  }

  /** @throws ServeError, also if it answers for another replica. */
  async #describe(
    members: MemberQuestions,
    replica: string,
    signal: CancelSignal,
  ): Promise<StepDescription> {
    const answer = await members.ask(replica, 'describe', null, { signal })
    this.#limit.take(replica, answer)
    const description = parseDescriptionJson(answer)
    if (description.replica === replica) return description
    const text = `step description: got replica "${description.replica}", want "${replica}"`
    throw new ServeError('MALFORMED_MESSAGE', text, { details: { replica } })
  }

  #retry(replica: string, known: Known, error: unknown): void {
    const { clock, log, random } = this.#options
    const delayMs = backoffMs(known.failures, {
      ...BACKOFF,
      ...(random !== undefined && { random }),
    })
    known.failures += 1
    describeFailed(log, replica, ServeError.from(error), delayMs)
    known.stop = clock.setTimer(delayMs, () => {
      this.#due.add(replica)
      this.#ask()
    })
  }
}

/** Makes the questions to a step behind the broker. */
function remoteStep(members: Promise<MemberQuestions>, replica: string): StepQuestions {
  return {
    statistics: async (model, version) => {
      const asked = await members
      const o = { signal: UNLIMITED }
      const answer = await asked.ask(replica, 'statistics', { model, version }, o)
      return parseStatisticsJson(answer)
    },
    isReady: async (model, version) => {
      const argument = { model, version: String(version) }
      const asked = await members
      const o = { signal: UNLIMITED, timeoutMs: READINESS_MS }
      return (await asked.ask(replica, 'ready', argument, o)) === true
    },
  }
}
