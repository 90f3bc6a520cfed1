import {
  type Client,
  CONTROLLER_REVISION,
  type ControllerRevision,
  isConflict,
  isNotFound,
  type KubeObject,
} from '@tutti/kube'
import { digestOf } from '../runtime/canonical.ts'
import { controllerOf, FIELD_MANAGER, type Owner, toOwnerReference } from '../runtime/children.ts'
import type { Revision, RevisionPlan } from './accepted-revisions.ts'

export interface RestoreOptions {
  readonly client: Client
  readonly owner: Owner
  /** By which caches and routers find it. */
  readonly labels: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** True for what caches and routers find: somebody may have taken a label away. */
export function isFound(
  { metadata: { labels = {} } }: KubeObject,
  wanted: RestoreOptions['labels'],
): boolean {
  return Object.entries(wanted).every(([key, value]) => labels[key] === value)
}

/**
 * Gives a ControllerRevision its labels and its owner back, which somebody took away: nobody finds it, and its name is taken. What
 * it holds can be changed by nobody, and names the uid of its owner.
 *
 * @returns undefined if it is another's, or holds something else.
 * @throws KubeError
 */
export async function restoreRevision(
  { name, revision, data }: RevisionPlan['create'][number],
  { client, owner, labels, signal }: RestoreOptions,
): Promise<Revision | undefined> {
  const key = { namespace: owner.object.metadata.namespace ?? '', name }
  const found = await client.get(CONTROLLER_REVISION, key, { signal })
  const { uid, resourceVersion, deletionTimestamp, ownerReferences = [] } = found.metadata
  const controller = controllerOf(found)
  const isOthers = controller !== undefined && controller.uid !== owner.object.metadata.uid
  if (isOthers || deletionTimestamp !== undefined || !isSame(found.data, data)) return undefined
  const others = ownerReferences.filter((one) => one.uid !== owner.object.metadata.uid)
  const owners = controller === undefined ? [...others, toOwnerReference(owner)] : ownerReferences
  const patch = {
    metadata: { uid, resourceVersion, labels, ownerReferences: owners.map((one) => ({ ...one })) },
    revision: Math.max(revision, found.revision),
  }
  return await client.mergePatch(CONTROLLER_REVISION, key, {
    fieldManager: FIELD_MANAGER,
    signal,
    patch,
  })
}

/** True if the owner's uid is named by what it holds, which nobody can change. */
export function isAbout({ data }: ControllerRevision, { object }: Owner): boolean {
  return Object(Object(data).resource).uid === object.metadata.uid
}

/** Gives one that a cache shows its labels and its owner back. @throws KubeError, but for one that is gone or newer. */
export async function restoreLost(one: Revision, o: RestoreOptions): Promise<void> {
  const { metadata, revision, data = {} } = one
  try {
    await restoreRevision({ name: metadata.name, revision, data }, o)
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error
  }
}

/** But for the generation that had it first, which counts for nothing where the names of two are the same. */
function isSame(found: ControllerRevision['data'], wanted: ControllerRevision['data']): boolean {
  return digestOf(withoutGeneration(found)) === digestOf(withoutGeneration(wanted))
}

function withoutGeneration(data: ControllerRevision['data']): unknown {
  const { generation: _, ...resource } = Object(Object(data).resource)
  return { ...Object(data), resource }
}
