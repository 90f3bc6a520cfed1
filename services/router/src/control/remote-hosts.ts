import { mayLoad } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import { type LoadParameters, pollFailed } from '@tutti/front-door'
import type { PeerQuestions } from '@tutti/transport'
import type { Router } from '../router.ts'
import type { ModelHosts } from './model-hosts.ts'

export interface RemoteHostsOptions {
  readonly peers: Promise<PeerQuestions>
  readonly router: Pick<Router, 'loadable' | 'offers' | 'until'>
  /** True if nothing has changed at the step since it was described. */
  readonly isCurrent: (replica: string) => boolean
}

/** A revision of a model that a step says to serve after a load. */
type Served = readonly (readonly [number, string])[]

/** What one step answered. */
type Answered =
  | { readonly replica: string; readonly served: Served }
  | { readonly replica: string; readonly error: ServeError }

/** Loads take as long as they take; a step that dies meanwhile ends the question. */
const { signal: UNLIMITED } = new AbortController()
const FOR_EVER = { signal: UNLIMITED, timeoutMs: Number.POSITIVE_INFINITY }

/** Hearing of what a step has just answered takes some milliseconds; a client should not wait longer for a lost heartbeat. */
const HEARING_MS = 5000

/** The steps behind the broker that load on request. A model is loaded at all of them that may serve it. */
export class RemoteHosts implements ModelHosts {
  readonly #o: RemoteHostsOptions

  constructor(o: RemoteHostsOptions) {
    this.#o = o
  }

  async names(): Promise<readonly string[]> {
    const names = new Set<string>()
    for (const { names: own } of this.#o.router.loadable().values()) {
      for (const name of own) names.add(name)
    }
    return [...names]
  }

  async load(name: string, parameters?: LoadParameters): Promise<void> {
    const steps = this.#stepsFor(name)
    if (steps.length === 0) {
      const text =
        'no step that is there may serve it; want one with --model-control-mode=explicit and, where it has --model, this model'
      throw pollFailed(name, new ServeError('MODEL_NOT_FOUND', text, { details: { model: name } }))
    }
    const answers = await Promise.all(steps.map((step) => this.#loadAt(step, name, parameters)))
    // Failures too: the index says why.
    await this.#o.router.until(() => this.#isHeard(name, answers), { timeoutMs: HEARING_MS })
    const error = this.#judge(name, answers)
    if (error !== undefined) throw error
  }

  /** Loads a model at one step, as a router does for one that came later. @throws ServeError */
  async loadAt(replica: string, name: string, parameters?: LoadParameters): Promise<void> {
    const answer = await this.#loadAt(replica, name, parameters)
    if ('error' in answer) throw answer.error
  }

  async unload(name: string): Promise<void> {
    const steps = [...this.#o.router.loadable().keys()]
    await Promise.all(steps.map((replica) => this.unloadAt(replica, name)))
    const { router, isCurrent } = this.#o
    const isGone = (): boolean =>
      steps.every((replica) => isCurrent(replica) && !router.offers(replica, name))
    await this.#o.router.until(isGone, { timeoutMs: HEARING_MS })
  }

  /** A step that is gone meanwhile serves nothing. @throws any other ServeError */
  async unloadAt(replica: string, name: string): Promise<void> {
    try {
      await (await this.#o.peers).ask(replica, 'unload', { model: name }, FOR_EVER)
    } catch (error) {
      if (this.#o.router.loadable().has(replica)) throw error
    }
  }

  #stepsFor(name: string): readonly string[] {
    return [...this.#o.router.loadable()]
      .filter(([, loadable]) => mayLoad(loadable, name))
      .map(([replica]) => replica)
  }

  async #loadAt(
    replica: string,
    name: string,
    { config, files }: LoadParameters = { files: new Map() },
  ): Promise<Answered> {
    const argument = { model: name, ...(config !== undefined && { config }) }
    try {
      const peers = await this.#o.peers
      const answer = await peers.ask(replica, 'load', argument, { ...FOR_EVER, files })
      return { replica, served: toServed(answer) }
    } catch (error) {
      return { replica, error: ServeError.from(error) }
    }
  }

  /** Steps that take what they do not know need not have the model, as long as another one has it. */
  #judge(name: string, answers: readonly Answered[]): ServeError | undefined {
    const failed = answers.flatMap((answer) => ('error' in answer ? [answer] : []))
    const lists = ({ replica }: Answered): boolean =>
      this.#o.router.loadable().get(replica)?.names.includes(name) ?? false
    const counted = failed.filter(
      (answer) => lists(answer) || answer.error.reason !== 'MODEL_POLL_FAILED',
    )
    const [first] = counted.length > 0 ? counted : failed
    if (first === undefined) return undefined
    if (counted.length === 0 && failed.length < answers.length) return undefined
    const asked = answers.length
    const isEverywhere =
      failed.length === asked && failed.every(({ error }) => error.message === first.error.message)
    if (isEverywhere) return first.error
    return atStep(first.error, first.replica, `${failed.length} of ${asked} steps failed`)
  }

  #isHeard(name: string, answers: readonly Answered[]): boolean {
    const { router, isCurrent } = this.#o
    return answers.every((answer) => {
      // A step that is gone by now is not to be waited for.
      if (!router.loadable().has(answer.replica)) return true
      if ('error' in answer) return isCurrent(answer.replica)
      return answer.served.every((served) => router.offers(answer.replica, name, served))
    })
  }
}

/** Triton's text first, then which step it was. */
function atStep(error: ServeError, replica: string, count: string): ServeError {
  return new ServeError(
    error.reason,
    `${error.message.trimEnd()} (step '${replica}'; ${count})\n`,
    {
      code: error.code,
      details: { ...error.details, replica },
      cause: error,
    },
  )
}

/** @throws ServeError MALFORMED_MESSAGE unless it is a list of [version, revision]. */
function toServed(answer: unknown): Served {
  if (Array.isArray(answer)) {
    const served = answer.flatMap((pair: unknown): Served => {
      if (!Array.isArray(pair)) return []
      const [version, revision]: readonly unknown[] = pair
      const isPair = typeof version === 'number' && typeof revision === 'string'
      return isPair ? [[version, revision]] : []
    })
    if (served.length === answer.length) return served
  }
  throw new ServeError('MALFORMED_MESSAGE', 'answer to "load": want a list of [version, revision]')
}
