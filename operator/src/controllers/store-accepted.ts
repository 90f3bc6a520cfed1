import { ACCEPTED_LABEL } from '@tutti/api'
import {
  type Client,
  CONTROLLER_REVISION,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeError,
  keyOf,
} from '@tutti/kube'
import {
  controllerOf,
  FIELD_MANAGER,
  MANAGED_BY,
  type Owner,
  toOwnerReference,
  toSelector,
} from '../runtime/children.ts'
import { OwnerCheck } from '../runtime/owner-check.ts'
import { isRefusal } from '../runtime/refusal.ts'
import {
  acceptedOf,
  byRevision,
  planNewestRevision,
  type Revision,
  type RevisionPlan,
  type WantedRevision,
} from './accepted-revisions.ts'

export interface StoreOptions {
  readonly client: Client
  readonly owner: Owner
  /** ControllerRevisions of the owner, from a cache. */
  readonly known: readonly Revision[]
  /** ControllerRevisions that an earlier owner of this name left behind. They are deleted when this owner has its own. */
  readonly orphans: readonly Revision[]
  /** Revisions one of which must be the newest. If the list is empty, nothing is created. */
  readonly wanted: readonly WantedRevision[]
  /**
   * Function that finds revisions to delete.
   *
   * @param revisions - the owner's revisions, newest first.
   * @param history - number of unneeded revisions to keep for a rollback.
   */
  readonly findUnused: (revisions: readonly Revision[], history: number) => readonly Revision[]
  readonly signal: AbortSignal
}

/** Number of revisions that are kept beyond those in use, so that a rollback finds them. */
const HISTORY = 3

export interface StoredRevisions {
  /** The accepted revisions, the newest first. */
  readonly revisions: readonly Revision[]
  /** Revisions that this call created or made the newest again, also if the server refused another one. */
  readonly made: readonly Revision[]
  /** Error for a wanted revision that is not the newest. The caller throws it after everything else, to try again. */
  readonly refusal?: Error
  /** Error for an unneeded revision that the server refuses to delete. The caller throws it after everything else. */
  readonly left?: KubeError
}

/**
 * Makes an accepted revision the newest of the owner's ControllerRevisions, and deletes unneeded ones. The content of a revision
 * never changes.
 *
 * @throws KubeError for a call that may succeed at the next try; OwnerMoved if the owner is gone or edited when something must be
 * written. Refusals are in the result.
 */
export async function storeAccepted(o: StoreOptions): Promise<StoredRevisions> {
  const known = o.known.filter((one) => isLabelled(one, o.owner)).toSorted(byRevision)
  const { create, renew } = planNewestRevision(o.wanted, known)
  const isPlanned = create.length > 0 || renew !== undefined
  if (!isPlanned && unusedOf(known, o).length === 0) return { revisions: known, made: [] }
  // After a restart the cache may be far behind: an edit that was accepted long ago must not be undone.
  await new OwnerCheck(o.client, o.owner, o.signal).ensure()
  // Asked of the server: numbers must count up, whatever the cache has seen. It happens once for each change.
  const live = (await list(o)).toSorted(byRevision)
  const { made, refusal } = await carryOut(planNewestRevision(o.wanted, live), o)
  const renewed = new Set(made.map(({ metadata }) => metadata.uid))
  const others = live.filter(({ metadata }) => !renewed.has(metadata.uid))
  const revisions = [...made, ...others].toSorted(byRevision)
  if (refusal !== undefined) return { revisions, made, refusal }
  return { made, ...(await forget(revisions, o)) }
}

/** Deletes what is out of use. @returns what is there still. */
async function forget(
  revisions: readonly Revision[],
  o: StoreOptions,
): Promise<Pick<StoredRevisions, 'revisions' | 'left'>> {
  const gone = new Set<Revision>()
  let left: KubeError | undefined
  for (const revision of unusedOf(revisions, o)) {
    try {
      await remove(revision, o)
      gone.add(revision)
    } catch (error) {
      // It does no harm.
      if (!isRefusal(error)) throw error
      left ??= error
    }
  }
  const kept = revisions.filter((revision) => !gone.has(revision))
  return { revisions: kept, ...(left !== undefined && { left }) }
}

/** Routers go on with what was left behind until there is something else to go on with. */
function unusedOf(
  revisions: readonly Revision[],
  { findUnused, orphans, owner }: StoreOptions,
): readonly Revision[] {
  // One from which somebody took its owner may still be needed.
  const left = orphans.filter((one) => acceptedOf(one)?.resource.uid !== owner.object.metadata.uid)
  const unused = [...findUnused(revisions, HISTORY), ...(revisions.length > 0 ? left : [])]
  return unused.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

async function list({ client, owner, signal }: StoreOptions): Promise<readonly Revision[]> {
  const { namespace = '', uid } = owner.object.metadata
  const labelSelector = toSelector(kindLabels(owner))
  const { items } = await client.list(CONTROLLER_REVISION, { namespace, labelSelector, signal })
  return items.filter((item) => controllerOf(item)?.uid === uid && isLabelled(item, owner))
}

async function carryOut(
  { create, renew }: RevisionPlan,
  o: StoreOptions,
): Promise<Pick<StoredRevisions, 'made' | 'refusal'>> {
  const made: Revision[] = []
  try {
    for (const revision of create) made.push(await make(revision, o))
    if (renew !== undefined) made.push(await makeNewest(renew, o))
  } catch (error) {
    if (isRefusal(error)) return { made, refusal: error }
    // The name follows from the content: somebody took the labels or the owner away, or made it.
    if (!isAlreadyExists(error)) throw error
    const message = `${error.message}, and it lacks the labels or the owner that the operator gives it: delete it`
    return { made, refusal: new Error(message, { cause: error }) }
  }
  return { made }
}

async function makeNewest(
  { object, revision }: NonNullable<RevisionPlan['renew']>,
  { client, signal }: StoreOptions,
): Promise<Revision> {
  // The uid holds it to the object that was seen.
  const patch = { metadata: { uid: object.metadata.uid }, revision }
  const options = { fieldManager: FIELD_MANAGER, signal, patch }
  return await client.mergePatch(CONTROLLER_REVISION, keyOf(object), options)
}

async function make(
  { name, revision, data }: RevisionPlan['create'][number],
  { client, owner, signal }: StoreOptions,
): Promise<Revision> {
  const { namespace = '' } = owner.object.metadata
  const labels = labelsOf(owner)
  const metadata = { namespace, name, labels, ownerReferences: [toOwnerReference(owner)] }
  const options = { fieldManager: FIELD_MANAGER, signal }
  return await client.create(CONTROLLER_REVISION, { metadata, data, revision }, options)
}

async function remove(revision: Revision, { client, signal }: StoreOptions): Promise<void> {
  const { uid, resourceVersion } = revision.metadata
  try {
    // As it was seen: meanwhile it may have become the newest again.
    const options = { preconditions: { uid, resourceVersion }, signal }
    await client.delete(CONTROLLER_REVISION, keyOf(revision), options)
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error
  }
}

function labelsOf(owner: Owner): Readonly<Record<string, string>> {
  const { name: instance } = owner.object.metadata
  return { ...MANAGED_BY, 'app.kubernetes.io/instance': instance, ...kindLabels(owner) }
}

/**
 * Returns the labels by which the ControllerRevisions of an owner are found: `tutti.dev/model` and `tutti.dev/ensemble` name the
 * owner.
 */
function kindLabels({ resource, object }: Owner): Readonly<Record<string, string>> {
  const kind = resource.kind.toLowerCase()
  return { [ACCEPTED_LABEL]: kind, [`tutti.dev/${kind}`]: object.metadata.name }
}

/** True for what caches and routers find: somebody may have taken a label away. */
function isLabelled({ metadata: { labels = {} } }: Revision, owner: Owner): boolean {
  return Object.entries(labelsOf(owner)).every(([key, value]) => labels[key] === value)
}
