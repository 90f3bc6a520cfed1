import type { PinnedVersion } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { ReplicaAddress, StepDirectory } from '@tutti/transport'
import { type LiveRevision, noReplica } from './catalog.ts'

/** What chooses replicas for attempts. */
export interface ReplicaChoice {
  readonly directory: Pick<StepDirectory, 'acquire' | 'isServed' | 'whenDecided'>
  /** What is served under a model version now, the best first. */
  liveRevisions(model: string, version: number): readonly LiveRevision[]
}

/** A model version as the request's catalog pinned it, with what other revisions must have in common with it. */
export interface PinnedSignature extends PinnedVersion {
  readonly signature: string
}

/** A place at a replica for one attempt. */
export interface ChosenReplica {
  readonly address: ReplicaAddress
  /** The pinned revision, or the one that the request moved to. */
  readonly revision: string
  /** Ends the attempt. @param executed - 'no' if nothing can have run, so that the request may still move. */
  ended(executed: 'no' | 'maybe'): void
}

interface Pin {
  revision: string
  /** Attempts that ran, may have run, or may still run under `revision`. */
  uses: number
}

/**
 * The revisions that one request uses, nested ensembles included: one for each model version, whatever happens meanwhile
 * (invariant 4). It moves only as long as nothing ran, and only to a revision with the same signature.
 */
export class RevisionPins {
  readonly #pins = new Map<string, Pin>()
  /** Replicas that failed an attempt of this request: asked again only where there is no other. */
  #avoid: Set<string> | undefined

  /**
   * Takes a place at a replica of the request's revision.
   *
   * @throws ServeError REVISION_GONE if only others are served, STEP_UNAVAILABLE if there is no replica or none has room.
   */
  choose(o: ReplicaChoice, pinned: PinnedSignature): ChosenReplica {
    const pin = this.#pinOf(pinned)
    const { model, version } = pinned
    if (!o.directory.isServed({ model, version, revision: pin.revision }))
      this.#move(o, pinned, pin)
    const place = o.directory.acquire({ model, version, revision: pin.revision }, this.#avoid)
    if (place === undefined) throw noReplica(pinned)
    const { address } = place
    pin.uses += 1
    return {
      address,
      revision: pin.revision,
      ended: (executed) => {
        place.release()
        if (executed === 'maybe') return
        pin.uses -= 1
        this.#avoid ??= new Set()
        this.#avoid.add(address.replica)
      },
    }
  }

  /** The revision that the next attempt would use. */
  revisionOf(pinned: PinnedSignature): string {
    return this.#pinOf(pinned).revision
  }

  #pinOf({ model, version, revision }: PinnedSignature): Pin {
    const key = `${model} ${version}`
    const known = this.#pins.get(key)
    if (known !== undefined) return known
    const pin = { revision, uses: 0 }
    this.#pins.set(key, pin)
    return pin
  }

  #move(o: ReplicaChoice, pinned: PinnedSignature, pin: Pin): void {
    const { model, version, signature } = pinned
    const served = o
      .liveRevisions(model, version)
      .filter(({ revision }) => o.directory.isServed({ model, version, revision }))
    if (served.length === 0) throw noReplica(pinned)
    const next = served.find((live) => live.signature === signature)
    if (next !== undefined && pin.uses === 0) {
      pin.revision = next.revision
      return
    }
    const why =
      next === undefined
        ? 'what is served now has other inputs or outputs'
        : 'the request has used it already'
    throw new ServeError(
      'REVISION_GONE',
      `model '${model}' version ${version}: revision ${pin.revision} is pinned and no longer served; ${why}`,
      { details: { model, version: String(version) } },
    )
  }
}
