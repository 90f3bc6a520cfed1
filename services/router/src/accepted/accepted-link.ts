import type { Logger } from '@tutti/chassis'
import { acceptedSynced } from '../log-events.ts'
import { AcceptedRevisions, type RevisionObject } from './accepted-revisions.ts'
import type { AcceptedSet } from './accepted-set.ts'

/** A change of the ControllerRevisions that a watch tells; as `ReflectorEvent`. */
export type RevisionEvent = {
  readonly type: 'added' | 'updated' | 'deleted'
  readonly object: RevisionObject
}

/** Gets the changes of the ControllerRevisions that the operator wrote. */
export interface RevisionListener {
  readonly onEvent: (event: RevisionEvent) => void
  /** Comes once, after all that were there at first. */
  readonly onSynced: () => void
}

/** Watches them until it is closed. */
export type WatchRevisions = (listener: RevisionListener) => { close(): Promise<void> }

/**
 * Between a router and the ControllerRevisions of its namespace. Nothing is served before all of them are known, so that no
 * request meets half of it; afterwards what was known counts for as long as the API server cannot be reached.
 */
export class AcceptedLink {
  readonly #revisions: AcceptedRevisions
  readonly #view: { setAccepted(accepted: AcceptedSet): void }
  readonly #log: Logger
  readonly #watch: { close(): Promise<void> }
  #hasSynced = false
  #isClosed = false
  /** Changes often come together, and each makes a new catalog. */
  #isDue = false

  constructor(o: {
    readonly view: { setAccepted(accepted: AcceptedSet): void }
    readonly watch: WatchRevisions
    readonly log: Logger
  }) {
    this.#view = o.view
    this.#log = o.log
    this.#revisions = new AcceptedRevisions(o)
    this.#watch = o.watch({
      onEvent: (event) => this.#changed(event),
      onSynced: () => this.#synced(),
    })
  }

  /** False until everything that was accepted has been read once. */
  get hasSynced(): boolean {
    return this.#hasSynced
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#watch.close()
  }

  #changed({ type, object }: RevisionEvent): void {
    if (type === 'deleted') this.#revisions.delete(object.metadata.name)
    else this.#revisions.put(object)
    if (!this.#hasSynced || this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#tell()
    })
  }

  #synced(): void {
    this.#hasSynced = true
    this.#tell()
    const { models, ensembles } = this.#revisions.current
    acceptedSynced(this.#log, { models: models.size, ensembles: ensembles.length })
  }

  #tell(): void {
    if (!this.#isClosed) this.#view.setAccepted(this.#revisions.current)
  }
}
