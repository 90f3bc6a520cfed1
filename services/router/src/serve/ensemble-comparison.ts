import { parseWire } from '@tutti/api'
import type { Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { MemberQuestions } from '@tutti/transport'
import { z } from 'zod'
import type { EnsembleSource } from '../catalog/ensemble-source.ts'
import { ensemblesDiffer, routerNotDescribed } from '../log-events.ts'
import { LoggedOnce } from '../log-once.ts'

/** Never aborts: questions have a time of their own. */
const UNLIMITED = new AbortController().signal

/** Routers that wait to be asked; a bound, because their names come from outside. */
const MAX_WAITING = 1024

/** Most characters of a name in DNS. */
const LONGEST_HOST = 253

/** Ensemble, version and the digest of its configuration and files. */
const Described = z.tuple([z.string(), z.number(), z.string()])
type Described = Readonly<z.infer<typeof Described>>

/** `host` is for people. */
const Description = z.object({ ensembles: z.array(Described), host: z.string().exactOptional() })

/**
 * Compares the ensembles of a router with those of other routers, and logs a line if two differ under one name. Clients would
 * get one or the other, by the router that they reach, and nothing tells which one is meant.
 */
export class EnsembleComparison {
  readonly #self: string
  readonly #host: string
  readonly #ensembles: () => readonly EnsembleSource[]
  readonly #members: Promise<Pick<MemberQuestions, 'ask'>>
  readonly #log: Logger
  readonly #logged = new LoggedOnce()
  /** Asked one after the other, so that senders that only pretend to be routers cost one question at a time. */
  readonly #waiting = new Set<string>()
  #isAsking = false
  readonly #hosts = new Map<string, string>()
  #described: { readonly of: readonly EnsembleSource[]; readonly as: object } | undefined

  constructor(o: {
    /** Name of this router. */
    readonly self: string
    /** Host name of its machine. */
    readonly host: string
    readonly ensembles: () => readonly EnsembleSource[]
    readonly members: Promise<Pick<MemberQuestions, 'ask'>>
    readonly log: Logger
  }) {
    this.#self = o.self
    this.#host = o.host
    this.#ensembles = o.ensembles
    this.#members = o.members
    this.#log = o.log
  }

  /** Describes this router's ensembles to other routers. Returns the same object until the ensembles change. */
  readonly describe = (): object => {
    const ensembles = this.#ensembles()
    if (this.#described?.of !== ensembles) {
      const as = { ensembles: ensembles.flatMap(toDescribed), host: this.#host }
      this.#described = { of: ensembles, as }
    }
    return this.#described.as
  }

  /** Returns the host name of another router's machine, as that router said last; '' if it has not said it. */
  hostOf(router: string): string {
    return this.#hosts.get(router) ?? ''
  }

  /** Asks another router for its ensembles, because the router is new or has other ensembles than before. */
  readonly routerChanged = (router: string): void => {
    if (this.#waiting.size < MAX_WAITING) this.#waiting.add(router)
    if (!this.#isAsking) void this.#askAll()
  }

  async #askAll(): Promise<void> {
    this.#isAsking = true
    for (const router of this.#waiting) {
      this.#waiting.delete(router)
      try {
        await this.#compare(router)
      } catch (error) {
        // It is asked again when it announces a change; a router that is gone is not of interest.
        routerNotDescribed(this.#log, router, ServeError.from(error))
      }
    }
    this.#isAsking = false
  }

  async #compare(router: string): Promise<void> {
    const members = await this.#members
    const answer = await members.ask(router, 'describe', null, { signal: UNLIMITED })
    const { ensembles: theirs, host } = parseWire('router description', Description, answer)
    this.#remember(router, host)
    const own = new Map(
      this.#ensembles()
        .flatMap(toDescribed)
        .map((one) => [keyOf(one), one]),
    )
    for (const other of theirs) {
      const [ensemble, version, revision] = other
      const ours = own.get(keyOf(other))
      if (ours === undefined || ours[2] === revision) continue
      if (!this.#logged.isNew([router, ours, other])) continue
      ensemblesDiffer(this.#log, { ensemble, version, routers: [this.#self, router] })
    }
  }

  /** Routers come and go. */
  #remember(router: string, host: string | undefined): void {
    if (host === undefined || host.length > LONGEST_HOST) return
    if (this.#hosts.size >= MAX_WAITING) this.#hosts.clear()
    this.#hosts.set(router, host)
  }
}

function toDescribed({ name, versions }: EnsembleSource): readonly Described[] {
  return versions.map(({ version, revision }) => [name, version, revision] as const)
}

function keyOf([ensemble, version]: Described): string {
  return JSON.stringify([ensemble, version])
}
