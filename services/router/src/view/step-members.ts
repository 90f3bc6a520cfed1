import type {
  PinnedVersion,
  ServedModel,
  ServedVersion,
  StepControl,
  StepDescription,
} from '@tutti/api'
import { PART_HOST } from '@tutti/graph'
import type { StepDirectory } from '@tutti/transport'
import type { Acceptance } from '../accepted/acceptance.ts'
import { type DescribedStep, filterReady } from '../catalog/merge-replicas.ts'

/** The revisions that a step announces: [model, version, revision]. */
export type Revisions = readonly (readonly [string, number, string])[]

/** The questions that a router asks a step about statistics and readiness. */
export type StepQuestions = Omit<StepControl, 'describe'>

interface Member {
  control?: StepQuestions
  described?: { readonly description: StepDescription; readonly order: number }
  /** Revisions that heartbeats announce; absent for a step in this process, which serves what it describes. */
  serves?: ReadonlySet<string>
}

/**
 * The replicas that a router knows, each with its description and the revisions for which it takes work. This class tells the
 * directory about replicas in this process; the transport tells it about all others.
 */
export class StepMembers {
  readonly #directory: StepDirectory
  readonly #members = new Map<string, Member>()
  #descriptions = 0
  readonly #acceptance: Acceptance | undefined

  /** @param acceptance - all models may be used if absent. */
  constructor(directory: StepDirectory, acceptance?: Acceptance) {
    this.#directory = directory
    this.#acceptance = acceptance
    if (acceptance === undefined) return
    directory.restrict((replica, revision) => {
      // A part is asked for with its models, which have to be accepted themselves.
      if (revision.model === PART_HOST.model) return true
      const models = this.#described(replica)
      const model = models.find(({ name }) => name === revision.model)
      const version = model?.versions.find((one) => isReadyAs(one, revision))
      return (
        model !== undefined && version !== undefined && acceptance.mayAsk(replica, model, version)
      )
    })
  }

  /** Makes the directory check anew which revisions may be used, for one replica or for all. */
  review(replica?: string): void {
    if (this.#acceptance !== undefined) this.#directory.review(replica)
  }

  /** Controls for questions to every replica that was described, with the names of its models. */
  get controls(): readonly {
    readonly control: StepQuestions
    readonly models: ReadonlySet<string>
  }[] {
    return [...this.#members.values()].flatMap(({ control, described }) => {
      if (control === undefined) return []
      const names = described?.description.models.map(({ name }) => name)
      return [{ control, models: new Set(names) }]
    })
  }

  /** Descriptions of all replicas; `host` is '' if a replica does not name one. */
  get all(): readonly (StepDescription & { readonly host: string })[] {
    return [...this.#members.values()].flatMap(({ described }) =>
      described === undefined ? [] : [{ host: '', ...described.description }],
    )
  }

  /** Steps for the catalog, with the versions that new requests may use and those that are not READY. */
  get described(): readonly DescribedStep[] {
    return [...this.#members].flatMap(([replica, { described }]) =>
      described === undefined ? [] : [{ models: this.#models(replica), order: described.order }],
    )
  }

  /** Tells whether a replica takes new requests for a version. */
  offers(replica: string, wanted: PinnedVersion): boolean {
    const model = this.#models(replica).find(({ name }) => name === wanted.model)
    return model?.versions.some((known) => isReadyAs(known, wanted)) ?? false
  }

  #described(replica: string): readonly ServedModel[] {
    return this.#members.get(replica)?.described?.description.models ?? []
  }

  /** Lists the models that the replica described, without READY versions that take no new requests. */
  #models(replica: string): readonly ServedModel[] {
    const described = this.#described(replica)
    const models = this.#acceptance?.filter(replica, described) ?? described
    const serves = this.#members.get(replica)?.serves
    if (serves === undefined) return models
    return filterReady(models, ({ name }, { version, revision }) =>
      serves.has(revisionKey([name, version, revision])),
    )
  }

  /**
   * Tells whether a replica that takes requests for a revision is ready for them. A model that reports its own readiness is
   * asked; a replica that does not answer is not ready.
   */
  async isReady(
    name: string,
    { version, revision }: { readonly version: number; readonly revision: string },
  ): Promise<boolean> {
    const asked: Promise<boolean>[] = []
    for (const [replica, { control }] of this.#members) {
      if (!this.offers(replica, { model: name, version, revision })) continue
      const model = this.#models(replica).find((known) => known.name === name)
      const served = model?.versions.find((known) => known.version === version)
      if (served?.judgesReadiness !== true || control?.isReady === undefined) return true
      // A replica that does not answer is not ready.
      asked.push(control.isReady(name, version).catch(() => false))
    }
    return asked.length === 0 || (await Promise.all(asked)).some((isReady) => isReady)
  }

  /**
   * Takes from a heartbeat the revisions that a replica serves now; none if the replica drains.
   *
   * @returns false if the replica was not described yet.
   */
  announce(replica: string, revisions: Revisions): boolean {
    const member = this.#of(replica)
    const taken = this.#directory.takesWork(replica) ? revisions : []
    member.serves = new Set(taken.map(revisionKey))
    return member.described !== undefined
  }

  /**
   * Takes the description of a step. Until the step sends heartbeats, all READY versions in it are served.
   *
   * @param retired - replaced versions that the step executes only for requests that pinned them.
   */
  describe(description: StepDescription, control: StepQuestions, retired: Revisions = []): void {
    const { replica, models } = description
    const member = this.#of(replica)
    this.#descriptions += 1
    member.control = control
    member.described = { description, order: this.#descriptions }
    if (member.serves !== undefined) {
      this.review(replica)
      return
    }
    const ready = models.flatMap((model) =>
      model.versions
        .filter((v) => v.state === 'READY')
        .map((v) => ({ model: model.name, version: v.version, revision: v.revision })),
    )
    const pinned = retired.map(([model, version, revision]) => ({ model, version, revision }))
    this.#directory.announce({ replica }, [...ready, ...pinned])
  }

  /**
   * Removes a replica that is gone.
   *
   * @returns false if the replica was not known.
   */
  remove(replica: string): boolean {
    this.#directory.remove(replica)
    return this.#members.delete(replica)
  }

  #of(replica: string): Member {
    const known = this.#members.get(replica)
    if (known !== undefined) return known
    const member: Member = {}
    this.#members.set(replica, member)
    return member
  }
}

function isReadyAs(
  { version, revision, state }: ServedVersion,
  wanted: { readonly version: number; readonly revision: string },
): boolean {
  return state === 'READY' && version === wanted.version && revision === wanted.revision
}

function revisionKey(revision: Revisions[number]): string {
  return JSON.stringify(revision)
}
