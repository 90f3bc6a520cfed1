import { type Clock, type Logger, sleep } from '@tutti/chassis'
import { mayLoad, parseWantedJson, toWantedJson, type WantedModel } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { LoadParameters } from '@tutti/front-door'
import type { AnswerQuestion, RouterPeer } from '@tutti/transport'
import type { ControlChange, RepositoryControl } from '../control/model-control.ts'
import type { RemoteHosts } from '../control/remote-hosts.ts'
import type { WantedModels } from '../control/wanted-models.ts'
import { wantedNotApplied, wantedNotTold } from '../log-events.ts'
import type { Router } from '../router.ts'

export interface ControlLinkOptions {
  /** This router. */
  readonly name: string
  readonly peers: Promise<Pick<RouterPeer, 'ask' | 'routers'>>
  readonly router: Pick<Router, 'loadable' | 'offers'>
  readonly control: () => Pick<RepositoryControl, 'adopt'>
  readonly hosts: Pick<RemoteHosts, 'loadAt' | 'unloadAt'>
  readonly wanted: WantedModels
  readonly clock: Clock
  readonly log: Logger
}

/** Between two looks at who is there and what they lack. */
const LOOK_EVERY_MS = 250
/** For a router to tell what it knows; files of models may be among it. */
const TELLING_MS = 30_000

const { signal: UNLIMITED } = new AbortController()

/**
 * Keeps the routers of a repository of one mind about what is to be loaded, and brings the steps there that come later. Every
 * router tells every other what it was asked; a new one asks them all; the first by name tells steps what they lack.
 */
export class ControlLink {
  readonly #o: ControlLinkOptions
  readonly #known = new Set<string>()
  /** For each step what it was told last, by name. */
  readonly #told = new Map<string, Map<string, number>>()
  readonly #busy = new Set<string>()

  constructor(o: ControlLinkOptions) {
    this.#o = o
  }

  /** A request was carried out here. Resolves when the other routers know of it, or cannot be told. */
  readonly changed = async (change: ControlChange): Promise<void> => {
    const { wanted, peers } = this.#o
    const { parameters } = change
    const entry = wanted.stamp(toWanted(change))
    await wanted.take(entry, parameters?.files)
    for (const [replica] of this.#o.router.loadable()) {
      if (this.#o.router.offers(replica, entry.name)) this.#note(replica, entry)
    }
    const others = (await peers).routers()
    await Promise.all(others.map((router) => this.#tell(router, entry, parameters?.files)))
  }

  /** Answers `wanted`: one model that another router was asked for, or the wish to hear of all. */
  readonly answer: AnswerQuestion = async (_question, argument, { files }) => {
    const { wanted } = this.#o
    const said = new Map(typeof argument === 'object' ? Object.entries(argument ?? {}) : [])
    const to = said.get('to')
    if (typeof to === 'string') {
      for (const entry of wanted.all) await this.#tell(to, entry, await wanted.files(entry.name))
      return null
    }
    const entry = parseWantedJson(said.get('model'))
    if (await wanted.take(entry, files)) this.#adopt(entry, files)
    return null
  }

  /** Hears from the routers that are there what was asked for before this one came. */
  async catchUp(): Promise<void> {
    const { peers } = this.#o
    const routers = (await peers).routers()
    await Promise.all(routers.map((router) => this.#askAll(router)))
  }

  /** Looks who comes and what they lack, until the signal aborts. */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock, peers } = this.#o
    while (!signal.aborted) {
      // The signal is the only thing that ends a sleep early.
      await sleep(LOOK_EVERY_MS, { clock, signal }).catch(() => {})
      if (signal.aborted) return
      const routers = (await peers).routers()
      for (const router of routers) if (!this.#known.has(router)) void this.#askAll(router)
      for (const router of this.#known) if (!routers.includes(router)) this.#known.delete(router)
      // One is enough; which one does not matter, and two at a time do no harm.
      if (routers.every((router) => this.#o.name <= router)) this.#bringAllUp()
    }
  }

  #adopt(entry: WantedModel, files: ReadonlyMap<string, Uint8Array>): void {
    const { name, isLoaded, isExplicit, ensemble, config } = entry
    const isOverridden = config !== undefined || files.size > 0
    this.#o.control().adopt({
      name,
      isLoaded,
      isExplicit,
      isOverridden,
      ...(ensemble !== undefined && {
        ensemble: { source: { name, reason: '', ...ensemble }, digest: ensemble.digest },
      }),
    })
  }

  async #askAll(router: string): Promise<void> {
    this.#known.add(router)
    try {
      const peers = await this.#o.peers
      const o = { signal: UNLIMITED, timeoutMs: TELLING_MS }
      await peers.ask(router, 'wanted', { to: this.#o.name }, o)
    } catch (error) {
      // Asked again at the next look, if it is still there.
      this.#known.delete(router)
      wantedNotTold(this.#o.log, router, ServeError.from(error))
    }
  }

  async #tell(
    router: string,
    entry: WantedModel,
    files: ReadonlyMap<string, Uint8Array> | undefined,
  ): Promise<void> {
    try {
      const peers = await this.#o.peers
      const o = { signal: UNLIMITED, timeoutMs: TELLING_MS, ...(files && { files }) }
      await peers.ask(router, 'wanted', { model: toWantedJson(entry) }, o)
    } catch (error) {
      wantedNotTold(this.#o.log, router, ServeError.from(error))
    }
  }

  #bringAllUp(): void {
    const loadable = this.#o.router.loadable()
    for (const replica of this.#told.keys()) {
      if (!loadable.has(replica)) this.#told.delete(replica)
    }
    for (const [replica, loads] of loadable) {
      if (this.#busy.has(replica)) continue
      const lacking = this.#o.wanted.all.filter(
        (entry) =>
          entry.ensemble === undefined &&
          mayLoad(loads, entry.name) &&
          this.#told.get(replica)?.get(entry.name) !== entry.at,
      )
      if (lacking.length > 0) void this.#bringUp(replica, lacking)
    }
  }

  async #bringUp(replica: string, entries: readonly WantedModel[]): Promise<void> {
    this.#busy.add(replica)
    for (const entry of entries) {
      // Something newer was asked for while others were loaded; the next look takes it.
      if (this.#o.wanted.get(entry.name) !== entry) continue
      try {
        await this.#apply(replica, entry)
        this.#note(replica, entry)
      } catch (thrown) {
        const error = ServeError.from(thrown)
        wantedNotApplied(this.#o.log, replica, entry.name, error)
        // What the step itself refused it would refuse again; else it is told once more.
        if (MODEL_FAULTS.has(error.reason)) this.#note(replica, entry)
      }
    }
    this.#busy.delete(replica)
  }

  async #apply(replica: string, entry: WantedModel): Promise<void> {
    const { router, hosts, wanted } = this.#o
    const { name, isLoaded, config } = entry
    const isOffered = router.offers(replica, name)
    const isOverridden = config !== undefined || wanted.hasFiles(name)
    if (!isLoaded && isOffered) await hosts.unloadAt(replica, name)
    if (!isLoaded || (isOffered && !isOverridden)) return
    const files = await wanted.files(name)
    const parameters: LoadParameters = { files, ...(config !== undefined && { config }) }
    await hosts.loadAt(replica, name, isOverridden ? parameters : undefined)
  }

  #note(replica: string, { name, at }: WantedModel): void {
    const told = this.#told.get(replica) ?? new Map<string, number>()
    this.#told.set(replica, told.set(name, at))
  }
}

/** What a step answers of the model, and not of the way to it. */
const MODEL_FAULTS: ReadonlySet<ServeError['reason']> = new Set<ServeError['reason']>([
  'MODEL_POLL_FAILED',
  'MODEL_LOAD_FAILED',
  'MODEL_LOAD_OVERTAKEN',
  'UNSUPPORTED',
])

function toWanted(change: ControlChange): Omit<WantedModel, 'at' | 'by'> {
  const { name, isLoaded, isExplicit, parameters, ensemble } = change
  const config = parameters?.config
  const source = ensemble?.source
  return {
    name,
    isLoaded,
    isExplicit,
    ...(config !== undefined && { config }),
    ...(ensemble !== undefined &&
      source?.config !== undefined && {
        ensemble: {
          config: source.config,
          labels: source.labels,
          versions: source.versions,
          digest: ensemble.digest,
        },
      }),
  }
}
