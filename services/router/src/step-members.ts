import type { LoadableModels, StepControl, StepDescription } from '@tutti/ensemble'
import type { StepDirectory } from '@tutti/transport'
import type { DescribedStep } from './merge-replicas.ts'

/** What a step says that it serves: [model, version, revision]. */
export type Revisions = readonly (readonly [string, number, string])[]

interface Member {
  control?: StepControl
  described?: { readonly description: StepDescription; readonly order: number }
  /** From heartbeats; absent for a step in this process, which serves what it describes. */
  serves?: ReadonlySet<string>
}

/**
 * The replicas that a router knows, each with its description and what it takes work for. The directory is told of those in this
 * process; of all others the bearer tells it.
 */
export class StepMembers {
  readonly #directory: StepDirectory
  readonly #members = new Map<string, Member>()
  #descriptions = 0

  constructor(directory: StepDirectory) {
    this.#directory = directory
  }

  /** For questions to every replica that was described. */
  get controls(): readonly StepControl[] {
    return [...this.#members.values()].flatMap(({ control }) => (control ? [control] : []))
  }

  /** What is described, for the catalog. */
  get described(): readonly DescribedStep[] {
    return [...this.#members.values()].flatMap(({ described, serves }): DescribedStep[] => {
      if (described === undefined) return []
      if (serves === undefined) return [described]
      return [{ ...described, serves: (...revision) => serves.has(revisionKey(revision)) }]
    })
  }

  /** What the replicas load on request, of those that take work. */
  get loadable(): ReadonlyMap<string, LoadableModels> {
    const found = new Map<string, LoadableModels>()
    for (const [replica, { described }] of this.#members) {
      const loadable = described?.description.loadable
      if (loadable !== undefined && this.#directory.takesWork(replica)) found.set(replica, loadable)
    }
    return found
  }

  /**
   * True if the replica takes new requests for the model.
   *
   * @param wanted - [version, revision]; any if absent.
   */
  offers(replica: string, name: string, wanted?: readonly [number, string]): boolean {
    const member = this.#members.get(replica)
    const model = member?.described?.description.models.find((known) => known.name === name)
    return (
      model?.versions.some(({ version, revision, state }) => {
        if (state !== 'READY') return false
        if (wanted !== undefined && (wanted[0] !== version || wanted[1] !== revision)) return false
        return member?.serves?.has(revisionKey([name, version, revision])) ?? true
      }) ?? false
    )
  }

  /** True if a replica that takes requests for the revision is ready for them, by its own model's word where it has one. */
  async isReady(
    name: string,
    { version, revision }: { readonly version: number; readonly revision: string },
  ): Promise<boolean> {
    const asked: Promise<boolean>[] = []
    for (const [replica, { control, described }] of this.#members) {
      if (!this.offers(replica, name, [version, revision])) continue
      const model = described?.description.models.find((known) => known.name === name)
      const served = model?.versions.find((known) => known.version === version)
      if (served?.judgesReadiness !== true || control?.isReady === undefined) return true
      // A replica that does not answer is not ready.
      asked.push(control.isReady(name, version).catch(() => false))
    }
    return asked.length === 0 || (await Promise.all(asked)).some((isReady) => isReady)
  }

  /** Takes from a heartbeat what the replica serves now; nothing if it drains. */
  announce(replica: string, revisions: Revisions): void {
    const member = this.#of(replica)
    const taken = this.#directory.takesWork(replica) ? revisions : []
    member.serves = new Set(taken.map(revisionKey))
  }

  /**
   * Takes a description; unless heartbeats say otherwise, all that is READY in it is served.
   *
   * @param retired - what is executed besides, for requests that pinned it only.
   */
  describe(description: StepDescription, control: StepControl, retired: Revisions = []): void {
    const { replica, models } = description
    const member = this.#of(replica)
    this.#descriptions += 1
    member.control = control
    member.described = { description, order: this.#descriptions }
    if (member.serves !== undefined) return
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

function revisionKey(revision: Revisions[number]): string {
  return JSON.stringify(revision)
}
