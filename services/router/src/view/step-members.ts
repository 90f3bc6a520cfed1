import type {
  PinnedVersion,
  ServedModel,
  ServedVersion,
  StepControl,
  StepDescription,
} from '@tutti/api'
import type { StepDirectory } from '@tutti/transport'
import type { Acceptance } from '../accepted/acceptance.ts'
import { type DescribedStep, filterReady } from '../catalog/merge-replicas.ts'

/** The revisions that a step announces: [model, version, revision]. */
export type Revisions = readonly (readonly [string, number, string])[]

/** The questions to a step that it answers itself. */
export type StepQuestions = Omit<StepControl, 'describe'>

interface Member {
  control?: StepQuestions
  described?: { readonly description: StepDescription; readonly order: number }
  /** From heartbeats; absent for a step in this process, which serves what it describes. */
  serves?: ReadonlySet<string>
}

/**
 * The replicas that a router knows, each with its description and what it takes work for. The directory learns of those in this
 * process here, of all others from the transport.
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
      const models = this.#described(replica)
      const model = models.find(({ name }) => name === revision.model)
      const version = model?.versions.find((one) => isReadyAs(one, revision))
      return (
        model !== undefined && version !== undefined && acceptance.mayAsk(replica, model, version)
      )
    })
  }

  /** The directory learns what may be used now, of one replica or of all. */
  review(replica?: string): void {
    if (this.#acceptance !== undefined) this.#directory.review(replica)
  }

  /** For questions to every replica that was described, with the names of its models. */
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

  /** Every replica that was described, as it described itself. */
  get all(): readonly (StepDescription & { readonly host: string })[] {
    return [...this.#members.values()].flatMap(({ described }) =>
      described === undefined ? [] : [{ host: '', ...described.description }],
    )
  }

  /** The steps with what new requests may use, and what is not READY, for the catalog. */
  get described(): readonly DescribedStep[] {
    return [...this.#members].flatMap(([replica, { described }]) =>
      described === undefined ? [] : [{ models: this.#models(replica), order: described.order }],
    )
  }

  /** True if the replica takes new requests for the version. */
  offers(replica: string, wanted: PinnedVersion): boolean {
    const model = this.#models(replica).find(({ name }) => name === wanted.model)
    return model?.versions.some((known) => isReadyAs(known, wanted)) ?? false
  }

  #described(replica: string): readonly ServedModel[] {
    return this.#members.get(replica)?.described?.description.models ?? []
  }

  /** Those that the replica described, without the READY versions that take no new requests. */
  #models(replica: string): readonly ServedModel[] {
    const described = this.#described(replica)
    const models = this.#acceptance?.filter(replica, described) ?? described
    const serves = this.#members.get(replica)?.serves
    if (serves === undefined) return models
    return filterReady(models, ({ name }, { version, revision }) =>
      serves.has(revisionKey([name, version, revision])),
    )
  }

  /** True if a replica that takes requests for the revision is ready for them, by its model's own check where it has one. */
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

  /** Takes from a heartbeat what the replica serves now; nothing if it drains. @returns false if it was not described yet. */
  announce(replica: string, revisions: Revisions): boolean {
    const member = this.#of(replica)
    const taken = this.#directory.takesWork(replica) ? revisions : []
    member.serves = new Set(taken.map(revisionKey))
    return member.described !== undefined
  }

  /**
   * Takes a description; until the step sends heartbeats, all that is READY in it is served.
   *
   * @param retired - what is executed besides, for requests that pinned it only.
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

  /** @returns false if it was not known. */
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
