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
  planAccepted,
  type Revision,
  type RevisionPlan,
  type WantedRevision,
} from './accepted-revisions.ts'

export interface StoreOptions {
  readonly client: Client
  readonly owner: Owner
  /** The owner's, as a cache has them. */
  readonly known: readonly Revision[]
  /** Those of its name that have no owner: what an earlier one left behind goes once there is something of this one. */
  readonly orphans: readonly Revision[]
  /** Revisions of which one is to be the newest; nothing is made if there is none. */
  readonly wanted: readonly WantedRevision[]
  /**
   * Finds what can be forgotten.
   *
   * @param revisions - the newest first.
   * @param history - so many are kept although nothing needs them, so that a rollback finds them.
   */
  readonly findUnused: (revisions: readonly Revision[], history: number) => readonly Revision[]
  readonly signal: AbortSignal
}

/** Beside what is needed, so that a rollback finds them. */
const HISTORY = 3

export interface StoredRevisions {
  /** The accepted revisions, the newest first. */
  readonly revisions: readonly Revision[]
  /** Revisions of it that came now, or came back; all of them, also if another one was refused. */
  readonly made: readonly Revision[]
  /** Why what is wanted is not the newest. To be thrown once everything else is done, so that it is tried again. */
  readonly refusal?: Error
  /** Why something out of use is still there: the server refuses to delete it. To be thrown once everything else is done. */
  readonly left?: KubeError
}

/**
 * Makes what was accepted the newest of the owner's ControllerRevisions, and deletes those that are out of use. What they hold is
 * never changed.
 *
 * @throws KubeError for what is worth another try; OwnerMoved if something is to be changed for an owner that is gone or has been
 * edited.
 */
export async function storeAccepted(o: StoreOptions): Promise<StoredRevisions> {
  const known = o.known.filter((one) => isLabelled(one, o.owner)).toSorted(byRevision)
  const { create, renew } = planAccepted(o.wanted, known)
  const isPlanned = create.length > 0 || renew !== undefined
  if (!isPlanned && unusedOf(known, o).length === 0) return { revisions: known, made: [] }
  // After a restart the cache may be far behind: an edit that was accepted long ago must not be undone.
  await new OwnerCheck(o.client, o.owner, o.signal).ensure()
  // Asked of the server: numbers must count up, whatever the cache has seen. It happens once for each change.
  const live = (await list(o)).toSorted(byRevision)
  const { made, refusal } = await carryOut(planAccepted(o.wanted, live), o)
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

/** By which a kind's ControllerRevisions are found: `tutti.dev/model` and `tutti.dev/ensemble` name the owner. */
function kindLabels({ resource, object }: Owner): Readonly<Record<string, string>> {
  const kind = resource.kind.toLowerCase()
  return { [ACCEPTED_LABEL]: kind, [`tutti.dev/${kind}`]: object.metadata.name }
}

/** True for what caches and routers find: somebody may have taken a label away. */
function isLabelled({ metadata: { labels = {} } }: Revision, owner: Owner): boolean {
  return Object.entries(labelsOf(owner)).every(([key, value]) => labels[key] === value)
}
