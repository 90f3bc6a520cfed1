import { parseSleepMark, SLEEP_ANNOTATION } from '@tutti/api'
import type { Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type AcceptedEnsemble,
  type AcceptedModel,
  type ComposingModel,
  parseAcceptedJson,
  planEnsemble,
  validateGraph,
} from '@tutti/graph'
import { normaliseModelConfig } from '@tutti/model-config'
import { nameTaken, revisionRefused } from '../log-events.ts'
import { LoggedOnce } from '../log-once.ts'
import {
  type AcceptedEnsembleRevision,
  type AcceptedModelRevision,
  type AcceptedSet,
  NOTHING_ACCEPTED,
} from './accepted-set.ts'

/** The parts of a ControllerRevision that are read. */
export interface RevisionObject {
  readonly metadata: {
    readonly name: string
    /** RFC 3339, in UTC and whole seconds, so that texts compare as times. */
    readonly creationTimestamp: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly revision: number
  readonly data?: unknown
}

/** The ControllerRevision with its data read. */
interface Entry {
  readonly name: string
  readonly revision: number
  readonly createdAt: string
  readonly value: AcceptedModelRevision | AcceptedEnsembleRevision
}

/** All entries of one resource. */
interface Holder {
  readonly key: string
  readonly entries: readonly Entry[]
}

/**
 * Keeps the ControllerRevisions of a namespace and joins them into one set. Data that cannot be used is logged and ignored: the
 * former data of the same ControllerRevision stays, and so do all others.
 */
export class AcceptedRevisions {
  readonly #log: Logger
  readonly #entries = new Map<string, Entry>()
  /** Resource that holds a served name, by the name. */
  readonly #holders = new Map<string, string>()
  /** Resources of which a log line told that another one has their name. */
  readonly #refused = new LoggedOnce()
  #current: AcceptedSet | undefined = NOTHING_ACCEPTED

  constructor(o: { readonly log: Logger }) {
    this.#log = o.log
  }

  /** Adds or replaces a ControllerRevision. If its data cannot be used, a line is logged and its former data stays. */
  put(object: RevisionObject): void {
    const { name, creationTimestamp: createdAt, annotations = {} } = object.metadata
    try {
      const value = toValue(name, parseAcceptedJson(object.data), annotations[SLEEP_ANNOTATION])
      this.#entries.set(name, { name, revision: object.revision, createdAt, value })
      this.#current = undefined
    } catch (error) {
      revisionRefused(this.#log, name, ServeError.from(error))
    }
  }

  delete(name: string): void {
    if (this.#entries.delete(name)) this.#current = undefined
  }

  /** Accepted Models and Ensembles; the same object until something changes. */
  get current(): AcceptedSet {
    this.#current ??= this.#join()
    return this.#current
  }

  #join(): AcceptedSet {
    const models = new Map<string, readonly AcceptedModelRevision[]>()
    const ensembles: AcceptedEnsembleRevision[] = []
    const names = Map.groupBy(this.#entries.values(), ({ value }) => value.accepted.modelName)
    for (const name of this.#holders.keys()) if (!names.has(name)) this.#holders.delete(name)
    for (const [name, entries] of names) {
      const values = this.#choose(name, entries)
        .toSorted(byRevision)
        .map(({ value }) => value)
      const last = values.at(-1)
      if (last !== undefined && isEnsemble(last)) ensembles.push(last)
      // All are of one resource, and so of one kind.
      else
        models.set(
          name,
          values.flatMap((value) => (isEnsemble(value) ? [] : [value])),
        )
    }
    return { models, ensembles }
  }

  /** Chooses the entries of the resource that holds the name: the one that had it, else the one that was accepted first. */
  #choose(name: string, entries: readonly Entry[]): readonly Entry[] {
    const holders = [...Map.groupBy(entries, resourceKey)].map(
      ([key, list]): Holder => ({ key, entries: list }),
    )
    const known = this.#holders.get(name)
    const [first] = holders.toSorted(byAge)
    const holder = holders.find(({ key }) => key === known) ?? first
    if (holder === undefined) return []
    this.#holders.set(name, holder.key)
    for (const {
      key,
      entries: [entry],
    } of holders) {
      if (key === holder.key || entry === undefined) continue
      if (this.#refused.isNew([name, key])) nameTaken(this.#log, name, entry.value.accepted)
    }
    return holder.entries
  }
}

function toValue(
  name: string,
  accepted: AcceptedModel | AcceptedEnsemble,
  mark: string | undefined,
): AcceptedModelRevision | AcceptedEnsembleRevision {
  const { modelName, config } = accepted
  if (config.name !== modelName) {
    const text = `config.name is '${config.name}', want '${modelName}' as modelName says`
    throw new ServeError('MALFORMED_MESSAGE', text, { details: { field: 'config.name' } })
  }
  if (accepted.kind === 'Model') {
    return { name, accepted, ...(mark !== undefined && { sleep: parseSleepMark(mark) }) }
  }
  checkPlan(accepted)
  const source = {
    name: modelName,
    definition: { config: normaliseModelConfig(config), graph: accepted.graph },
    labels: {},
    versions: [{ version: 1, revision: name }],
    reason: '',
  }
  return { name, accepted, source }
}

/** @throws ServeError if it makes no plan even with the models that it was accepted with. */
function checkPlan({ config, graph, models }: AcceptedEnsemble): void {
  const { steps } = graph
  const known = new Map(Object.entries(models))
  validateGraph(config, graph)
  if (!steps.every(({ model }) => known.has(model))) return
  const readyVersions = [1, ...steps.map(({ version }) => version)]
  const lookup = (model: string): ComposingModel | undefined => {
    const found = known.get(model)
    return found && { config: found, readyVersions }
  }
  planEnsemble({ config, graph, lookup })
}

function isEnsemble(
  value: AcceptedModelRevision | AcceptedEnsembleRevision,
): value is AcceptedEnsembleRevision {
  return value.accepted.kind === 'Ensemble'
}

function resourceKey({ value }: Entry): string {
  return `${value.accepted.kind} ${value.accepted.resource.uid}`
}

function byRevision(a: Entry, b: Entry): number {
  return a.revision - b.revision || compare(a.name, b.name)
}

function byAge(a: Holder, b: Holder): number {
  return compare(firstAt(a), firstAt(b)) || compare(a.key, b.key)
}

function firstAt({ entries }: Holder): string {
  return entries.map(({ createdAt }) => createdAt).toSorted()[0] ?? ''
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
