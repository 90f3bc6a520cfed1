import type { CallContext } from '@tutti/chassis'
import type { Catalog } from './catalog.ts'
import type { RevisionPins } from './revision-pins.ts'

/** What belongs to one admitted request on its whole way, nested ensembles included. */
export interface RequestScope extends CallContext {
  readonly requestKey: string
  /** The view that the request was admitted under: all its versions and revisions come from here. */
  readonly catalog: Catalog
  /** Which revisions it uses, should they have to differ from the catalog's. */
  readonly pins: RevisionPins
  /** The models that called one another up to it, the outermost first; absent for a client's request. */
  readonly callers?: readonly string[]
  /** Gives up what the request pinned, once it is answered; called once. */
  readonly release: () => void
}
