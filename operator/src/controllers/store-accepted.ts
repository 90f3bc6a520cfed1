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
import { ownerState } from '../runtime/owner-check.ts'
import { isRefusal } from '../runtime/refusal.ts'
import {
  ACCEPTED_LABEL,
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
  /** Those that an earlier owner of that name left behind: they go once there is something of this one. */
  readonly orphans: readonly Revision[]
  /** Of which one is to be the newest; nothing is made if there is none. */
  readonly wanted: readonly WantedRevision[]
  /** What can be forgotten of all that there is then. @param revisions - the newest first. */
  readonly findUnused: (revisions: readonly Revision[]) => readonly Revision[]
  readonly signal: AbortSignal
}

export interface StoredRevisions {
  /** What is accepted, the newest first. */
  readonly revisions: readonly Revision[]
  /** What of it came now, or came back. */
  readonly made: readonly Revision[]
  /** Why what is wanted is not the newest: the server refuses it. */
  readonly refusal?: KubeError
}

/**
 * Makes what was accepted the newest of the owner's ControllerRevisions, and deletes those that are out of use. What they hold is
 * never changed. Nothing is done for an owner that is gone or has changed.
 *
 * @throws KubeError for what is worth another try; Error if an object of such a name is another's.
 */
export async function storeAccepted(o: StoreOptions): Promise<StoredRevisions> {
  const known = o.known.toSorted(byRevision)
  const { create, renew } = planAccepted(o.wanted, known)
  const isSettled = create.length === 0 && renew === undefined && unusedOf(known, o).length === 0
  if (isSettled) return { revisions: known, made: [] }
  // After a restart the cache may be far behind: an edit that was accepted long ago must not be undone.
  const state = await ownerState(o.client, o.owner, o.signal)
  if (state !== 'present') return { revisions: known, made: [] }
  // Asked of the server: numbers must count up, whatever the cache has seen. It happens once for each change.
  const live = await list(o)
  let made: readonly Revision[]
  try {
    made = await carryOut(planAccepted(o.wanted, live), o)
  } catch (error) {
    if (!isRefusal(error)) throw error
    return { revisions: live.toSorted(byRevision), made: [], refusal: error }
  }
  const renewed = new Set(made.map(({ metadata }) => metadata.uid))
  const all = [...made, ...live.filter(({ metadata }) => !renewed.has(metadata.uid))]
  const sorted = all.toSorted(byRevision)
  const unused = unusedOf(sorted, o)
  for (const revision of unused) await remove(revision, o)
  return { revisions: sorted.filter((revision) => !unused.includes(revision)), made }
}

/** Routers go on with what was left behind until there is something else to go on with. */
function unusedOf(
  revisions: readonly Revision[],
  { findUnused, orphans }: StoreOptions,
): readonly Revision[] {
  const unused = [...findUnused(revisions), ...(revisions.length > 0 ? orphans : [])]
  return unused.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

async function list({ client, owner, signal }: StoreOptions): Promise<readonly Revision[]> {
  const { namespace = '', uid } = owner.object.metadata
  const labelSelector = toSelector(kindLabels(owner))
  const { items } = await client.list(CONTROLLER_REVISION, { namespace, labelSelector, signal })
  return items.filter((item) => controllerOf(item)?.uid === uid)
}

async function carryOut(
  { create, renew }: RevisionPlan,
  o: StoreOptions,
): Promise<readonly Revision[]> {
  const made: Revision[] = []
  for (const revision of create) made.push(await make(revision, o))
  if (renew === undefined) return made
  const { object, revision } = renew
  // The uid holds it to the object that was seen.
  const patch = { metadata: { uid: object.metadata.uid }, revision }
  const options = { fieldManager: FIELD_MANAGER, signal: o.signal, patch }
  return [await o.client.mergePatch(CONTROLLER_REVISION, keyOf(object), options)]
}

async function make(
  { name, revision, data }: RevisionPlan['create'][number],
  { client, owner, signal }: StoreOptions,
): Promise<Revision> {
  const { namespace = '', name: instance } = owner.object.metadata
  const labels = { ...MANAGED_BY, 'app.kubernetes.io/instance': instance, ...kindLabels(owner) }
  const metadata = { namespace, name, labels, ownerReferences: [toOwnerReference(owner)] }
  try {
    const options = { fieldManager: FIELD_MANAGER, signal }
    return await client.create(CONTROLLER_REVISION, { metadata, data, revision }, options)
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    // Of an owner of that name before, and soon collected.
    throw new Error(`ControllerRevision "${name}" belongs to another owner`, { cause: error })
  }
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

/** By which a kind's ControllerRevisions are found: `tutti.dev/model` and `tutti.dev/ensemble` name the owner. */
function kindLabels({ resource, object }: Owner): Readonly<Record<string, string>> {
  const kind = resource.kind.toLowerCase()
  return { [ACCEPTED_LABEL]: kind, [`tutti.dev/${kind}`]: object.metadata.name }
}
