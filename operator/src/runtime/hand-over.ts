import {
  type Client,
  type KubeObject,
  type ObjectKey,
  type Resource,
  type Stored,
  unlessNotFound,
} from '@tutti/kube'
import { FIELD_MANAGER, HANDOVER_MANAGER } from './children.ts'
import { ownsReplicas } from './replicas-writer.ts'

interface Scaled extends KubeObject {
  readonly spec?: { readonly replicas?: number }
}

export interface HandOverOptions {
  readonly client: Client
  readonly resource: Resource<Scaled>
  readonly key: ObjectKey
  readonly uid: string
  readonly signal: AbortSignal
}

/**
 * Makes `HANDOVER_MANAGER` a second owner of an object's replicas, if the operator owns them. Without it, replicas that their
 * only owner drops would fall back to 1. The next scaler becomes the owner with its first change.
 */
export async function handOverReplicas(o: HandOverOptions): Promise<void> {
  const { client, resource, key, uid, signal } = o
  const live = await unlessNotFound(client.get(resource, key, { signal }))
  const replicas = live?.spec?.replicas
  if (live === undefined || replicas === undefined || !isOwned(live)) return
  await client.apply(
    resource,
    { metadata: { ...key, uid }, spec: { replicas } },
    { fieldManager: HANDOVER_MANAGER, signal },
  )
}

function isOwned(object: Stored<Scaled>): boolean {
  return (object.metadata.managedFields ?? []).some(
    (entry) =>
      entry.manager === FIELD_MANAGER && entry.operation === 'Apply' && ownsReplicas(entry),
  )
}
