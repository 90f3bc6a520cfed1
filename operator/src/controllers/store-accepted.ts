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
import { isQuotaExceeded, isRefusal } from '../runtime/refusal.ts'
import {
  ACCEPTED_LABEL,
  byRevision,
  planAccepted,
  type Revision,
  type RevisionPlan,
  type WantedRevision,
} from './accepted-revisions.ts'
import { unusedOfLeft, withAdvice } from './left-revisions.ts'
import { isAbout, isFound, restoreLost, restoreRevision } from './restore-revision.ts'

export interface StoreOptions {
  readonly client: Client
  readonly owner: Owner
  /** The owner's, as a cache has them. */
  readonly known: readonly Revision[]
  /**
   * Those of its name that have no owner. What an earlier owner left behind goes once there is something of this one; what names
   * this one's uid gets its owner back.
   */
  readonly orphans: readonly Revision[]
  /** All of the namespace that have no owner: where a quota is full, some of them may be in the way. */
  readonly left: () => readonly Revision[]
  /** Of which one is to be the newest; nothing is made if there is none. */
  readonly wanted: readonly WantedRevision[]
  /**
   * What can be forgotten.
   *
   * @param revisions - the newest first; what is about to be made is the newest already.
   * @param history - so many are kept although nothing needs them, so that a rollback finds them.
   */
  readonly findUnused: (revisions: readonly Revision[], history: number) => readonly Revision[]
  readonly signal: AbortSignal
}

/** Beside what is needed, so that a rollback finds them. */
const HISTORY = 3

export interface StoredRevisions {
  /** What is accepted, the newest first. */
  readonly revisions: readonly Revision[]
  /** What of it came now, or came back; all of that, also if another one was refused. */
  readonly made: readonly Revision[]
  /** Why what is wanted is not the newest: the server refuses it. */
  readonly refusal?: KubeError
  /** Why something out of use is still there: the server refuses to delete it. To be thrown once everything else is done. */
  readonly left?: KubeError
}

/**
 * Makes what was accepted the newest of the owner's ControllerRevisions, and deletes those that are out of use. What they hold is
 * never changed. Nothing is done for an owner that is gone or has changed.
 *
 * @throws KubeError for what is worth another try; Error if an object of such a name is another's.
 */
export async function storeAccepted(o: StoreOptions): Promise<StoredRevisions> {
  const labels = labelsOf(o.owner)
  const known = o.known.filter((one) => isFound(one, labels)).toSorted(byRevision)
  const lost = lostOf(o)
  const { create, renew } = planAccepted(o.wanted, known)
  const isPlanned = create.length > 0 || renew !== undefined || lost.length > 0
  if (!isPlanned && unusedOf(known, o).length === 0) return { revisions: known, made: [] }
  // After a restart the cache may be far behind: an edit that was accepted long ago must not be undone.
  const state = await ownerState(o.client, o.owner, o.signal)
  if (state !== 'present') return { revisions: known, made: [] }
  for (const one of lost) await restoreLost(one, { ...o, labels })
  // Asked of the server: numbers must count up, whatever the cache has seen. It happens once for each change.
  return await storeBeside((await list(o)).toSorted(byRevision), o)
}

/** @param live - what the server has of the owner, the newest first. */
async function storeBeside(live: readonly Revision[], o: StoreOptions): Promise<StoredRevisions> {
  const plan = planAccepted(o.wanted, live)
  // Before anything is made: a quota that is full of what nobody uses would refuse it for ever.
  const room = plan.create.length > 0 ? spareOrphans(live, o) : []
  const before = [...forgettable(plan, live, { ...o, history: HISTORY }), ...room]
  const first = await forget(live, before, o)
  const { made, refusal } = await carryOut(plan, o)
  const renewed = new Set(made.map(({ metadata }) => metadata.uid))
  const others = first.revisions.filter(({ metadata }) => !renewed.has(metadata.uid))
  const revisions = [...made, ...others].toSorted(byRevision)
  const isThere = (one: Revision): boolean => !room.includes(one)
  const isFull = isQuotaExceeded(refusal)
  const spare = isFull ? spareOf(plan, others, o) : []
  const orphans = o.orphans.filter(isThere)
  const unused = refusal === undefined ? unusedOf(revisions, { ...o, orphans }) : spare
  const last = await forget(revisions, unused, o)
  const left = last.left ?? first.left
  return {
    revisions: last.revisions,
    made,
    ...(refusal !== undefined && {
      refusal: isFull ? withAdvice(refusal, o.left().filter(isThere)) : refusal,
    }),
    ...(left !== undefined && { left }),
  }
}

/** What can go so that the next try has room: a rollback makes anew what it does not find. */
function spareOf(
  plan: RevisionPlan,
  others: readonly Revision[],
  o: StoreOptions,
): readonly Revision[] {
  return forgettable(plan, others, { ...o, history: 0 }).slice(-1)
}

/** What an earlier owner left behind that can go before anything is made. */
function spareOrphans(
  live: readonly Revision[],
  { orphans, owner, findUnused }: StoreOptions,
): readonly Revision[] {
  const others = orphans.filter((one) => !isAbout(one, owner))
  const unused = live.length > 0 ? others : unusedOfLeft(others, findUnused)
  return unused.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

/** The owner's own, of which somebody took a label or the owner away; a cache still shows them. */
function lostOf({ owner, known, orphans }: StoreOptions): readonly Revision[] {
  const labels = labelsOf(owner)
  const lost = [
    ...known.filter((one) => !isFound(one, labels)),
    ...orphans.filter((one) => isAbout(one, owner)),
  ]
  return lost.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

/**
 * What can go before all that is planned is there. Never the newest: if it stays the newest, routers go on with it.
 *
 * @param live - the newest first.
 */
function forgettable(
  { create }: RevisionPlan,
  live: readonly Revision[],
  { findUnused, history }: Pick<StoreOptions, 'findUnused'> & { readonly history: number },
): readonly Revision[] {
  const [newest] = live
  if (newest === undefined || create.length === 0) return []
  const coming = create.map((one) => ({
    ...newest,
    ...one,
    metadata: { ...newest.metadata, uid: '', name: one.name },
  }))
  const unused = new Set(findUnused([...coming.toReversed(), ...live], history))
  const rest = live.slice(1)
  return rest.filter((one) => unused.has(one) && one.metadata.deletionTimestamp === undefined)
}

/** Deletes some of them. @returns those that are there still, all others among them. */
async function forget(
  revisions: readonly Revision[],
  unused: readonly Revision[],
  o: StoreOptions,
): Promise<Pick<StoredRevisions, 'revisions' | 'left'>> {
  const gone = new Set<Revision>()
  let left: KubeError | undefined
  for (const revision of unused) {
    try {
      await remove(revision, o)
      gone.add(revision)
    } catch (error) {
      // It is in nobody's way: what is wanted is made all the same.
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
  const others = orphans.filter((one) => !isAbout(one, owner))
  const unused = [...findUnused(revisions, HISTORY), ...(revisions.length > 0 ? others : [])]
  return unused.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

async function list({ client, owner, signal }: StoreOptions): Promise<readonly Revision[]> {
  const { namespace = '', uid } = owner.object.metadata
  const labelSelector = toSelector(kindLabels(owner))
  const { items } = await client.list(CONTROLLER_REVISION, { namespace, labelSelector, signal })
  return items.filter((item) => controllerOf(item)?.uid === uid && isFound(item, labelsOf(owner)))
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
    if (!isRefusal(error)) throw error
    return { made, refusal: error }
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
  wanted: RevisionPlan['create'][number],
  { client, owner, signal }: StoreOptions,
): Promise<Revision> {
  const { name, revision, data } = wanted
  const { namespace = '' } = owner.object.metadata
  const labels = labelsOf(owner)
  const metadata = { namespace, name, labels, ownerReferences: [toOwnerReference(owner)] }
  try {
    const options = { fieldManager: FIELD_MANAGER, signal }
    return await client.create(CONTROLLER_REVISION, { metadata, data, revision }, options)
  } catch (error) {
    if (!isAlreadyExists(error)) throw error
    const restored = await restoreRevision(wanted, { client, owner, labels, signal })
    if (restored !== undefined) return restored
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

function labelsOf(owner: Owner): Readonly<Record<string, string>> {
  const { name: instance } = owner.object.metadata
  return { ...MANAGED_BY, 'app.kubernetes.io/instance': instance, ...kindLabels(owner) }
}

/** By which a kind's ControllerRevisions are found: `tutti.dev/model` and `tutti.dev/ensemble` name the owner. */
function kindLabels({ resource, object }: Owner): Readonly<Record<string, string>> {
  const kind = resource.kind.toLowerCase()
  return { [ACCEPTED_LABEL]: kind, [`tutti.dev/${kind}`]: object.metadata.name }
}
