import type { Logger } from '@tutti/chassis'
import { acceptedSynced } from '../log-events.ts'
import { AcceptedRevisions, type RevisionObject } from './accepted-revisions.ts'
import type { AcceptedSet } from './accepted-set.ts'

/** A change of a ControllerRevision that a watch reports. It has the form of a `ReflectorEvent`. */
export type RevisionEvent = {
  readonly type: 'added' | 'updated' | 'deleted'
  readonly object: RevisionObject
}

/** The listener for changes of the ControllerRevisions that the operator wrote. */
export interface RevisionListener {
  readonly onEvent: (event: RevisionEvent) => void
  /** Called once, after the events of all ControllerRevisions that existed at first. */
  readonly onSynced: () => void
}

/** Watches the ControllerRevisions until the result is closed. */
export type WatchRevisions = (listener: RevisionListener) => { close(): Promise<void> }

/**
 * Takes the ControllerRevisions of a namespace into the view of a router. Nothing is served before all of them are known, so
 * that no request meets half of them. Later, while the API server cannot be reached, the last known ones stay in force.
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
