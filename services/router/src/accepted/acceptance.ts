import { isDeepStrictEqual } from 'node:util'
import type { ServedModel, ServedVersion } from '@tutti/api'
import { BUILTIN_HOST } from '@tutti/builtins'
import type { Logger } from '@tutti/chassis'
import type { ModelConfig } from '@tutti/model-config'
import { type CatalogModel, lostVersion } from '../catalog/catalog.ts'
import { filterReady } from '../catalog/merge-replicas.ts'
import { remembered } from '../catalog/remembered.ts'
import { configDiffers } from '../log-events.ts'
import { LoggedOnce } from '../log-once.ts'
import { type AcceptedModelRevision, type AcceptedSet, NOTHING_ACCEPTED } from './accepted-set.ts'
import { toSleeping } from './sleeping-model.ts'

/** Former revisions of a Model, and such Models, remembered for requests in flight; bounds, because every rollout makes one. */
const MAX_FORMER = 4
const MAX_FORMER_MODELS = 1024

/**
 * Decides which models of replicas requests may use: those that an accepted Model names, as long as the replica describes them
 * with the accepted configuration.
 */
export class Acceptance {
  readonly #log: Logger
  readonly #logged = new LoggedOnce()
  #accepted: AcceptedSet = NOTHING_ACCEPTED
  /** Revisions that no longer count, by served name; the newest is the last. */
  readonly #former = new Map<string, readonly AcceptedModelRevision[]>()
  /** Models that were lost, by served name, as they were reported last. */
  #lost: ReadonlyMap<string, CatalogModel> = new Map()

  constructor(o: { readonly log: Logger }) {
    this.#log = o.log
  }

  get accepted(): AcceptedSet {
    return this.#accepted
  }

  set(accepted: AcceptedSet): void {
    for (const [model, revisions] of this.#accepted.models) {
      const kept = new Set(accepted.models.get(model)?.map(({ name }) => name))
      const gone = revisions.filter(({ name }) => !kept.has(name))
      if (gone.length === 0) continue
      const former = [...(this.#former.get(model) ?? []), ...gone].slice(-MAX_FORMER)
      this.#former.delete(model)
      this.#former.set(model, former)
    }
    for (const [longest] of this.#former) {
      if (this.#former.size <= MAX_FORMER_MODELS) break
      this.#former.delete(longest)
    }
    this.#accepted = accepted
  }

  /**
   * Keeps the models of a replica that requests may use. It leaves out models that were never accepted, and READY versions of a
   * revision that is not accepted.
   */
  filter(replica: string, models: readonly ServedModel[]): readonly ServedModel[] {
    const accepted = this.#accepted.models
    return filterReady(
      models.filter(({ name }) => accepted.has(name) || name === BUILTIN_HOST),
      (model, served) => this.#mayUse(replica, model, served, accepted.get(model.name) ?? []),
    )
  }

  /**
   * Tells whether requests may use a version at a replica. Requests that pinned a revision while it was accepted may finish
   * with it.
   */
  mayAsk(replica: string, model: ServedModel, version: ServedVersion): boolean {
    const { name } = model
    const former = this.#former.get(name) ?? []
    const revisions = [...former, ...(this.#accepted.models.get(name) ?? [])]
    return this.#mayUse(replica, model, version, revisions)
  }

  /**
   * Lists the accepted models that no replica describes: they are not unknown, because their replicas may come at any time. Those
   * that may sleep are listed as long as no replica serves them.
   *
   * @param find - finds what replicas describe of a model.
   */
  lost(find: (model: string) => CatalogModel | undefined): readonly CatalogModel[] {
    const lost = [...this.#accepted.models].flatMap(([name, revisions]) => {
      const newest = revisions.at(-1)
      if (newest === undefined) return []
      const described = find(name)
      const before = this.#lost.get(name)
      if (newest.sleep !== undefined) {
        const sleeping = toSleeping(newest, { described, before })
        return sleeping === undefined ? [] : [sleeping]
      }
      if (described !== undefined) return []
      const make = (): CatalogModel => toLost(name, newest.accepted.config, revisions)
      return [remembered(before, revisions, make)]
    })
    this.#lost = new Map(lost.map((model) => [model.name, model]))
    return lost
  }

  #mayUse(
    replica: string,
    { name: model, config }: ServedModel,
    served: ServedVersion,
    revisions: readonly AcceptedModelRevision[],
  ): boolean {
    // Built-ins are the same in every replica, and are in no Model that could be accepted.
    if (model === BUILTIN_HOST) return true
    // A revision is one configuration. Should two differ, the newest is right, so that requests never meet both.
    const naming = revisions.findLast((one) => names(one, served))
    if (naming === undefined) return false
    const { version, revision } = served
    const described = served.own?.config ?? config
    if (described !== undefined && isSame(described, acceptedConfig(naming, version))) return true
    const difference = { replica, model, version, revision }
    if (this.#logged.isNew(difference)) configDiffers(this.#log, difference)
    return false
  }
}

/** Tells whether a Model was accepted with this revision of a version. */
export function names(
  { accepted }: AcceptedModelRevision,
  { version, revision }: { readonly version: number; readonly revision: string },
): boolean {
  return accepted.versions.some((one) => one.version === version && one.revision === revision)
}

/** Returns the configuration with which a version was accepted. */
export function acceptedConfig({ accepted }: AcceptedModelRevision, version: number): ModelConfig {
  return accepted.versions.find((one) => one.version === version)?.config ?? accepted.config
}

const SAME = new WeakMap<ModelConfig, WeakMap<ModelConfig, boolean>>()

/**
 * Tells whether two configurations are equal. The result is remembered, because configurations never change and are compared at
 * each change of anything.
 */
export function isSame(described: ModelConfig, accepted: ModelConfig): boolean {
  const known = SAME.get(described) ?? new WeakMap<ModelConfig, boolean>()
  SAME.set(described, known)
  const same = known.get(accepted) ?? isDeepStrictEqual(described, accepted)
  known.set(accepted, same)
  return same
}

function toLost(
  name: string,
  config: ModelConfig,
  revisions: readonly AcceptedModelRevision[],
): CatalogModel {
  const all = revisions.flatMap(({ accepted }) => accepted.versions)
  const newest = new Map(all.map((one) => [one.version, one]))
  const versions = [...newest.values()]
    .toSorted((a, b) => a.version - b.version)
    .map((one) => lostVersion(name, one))
  return { kind: 'model', name, config, labels: {}, versions, reason: '' }
}
