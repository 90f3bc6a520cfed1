import {
  type Client,
  isNotFound,
  type KubeObject,
  type ManagedFields,
  type ObjectKey,
  type Resource,
  type Stored,
} from '@tutti/kube'
import { FIELD_MANAGER, HANDOVER_MANAGER } from './children.ts'

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
 * Gives the replicas that an object has right now to a second manager, if the operator owns them: dropped by their only owner
 * they would fall back to 1. The next scaler takes them from there by its first change.
 */
export async function handOverReplicas(o: HandOverOptions): Promise<void> {
  const { client, resource, key, uid, signal } = o
  const live = await readLive(o)
  const replicas = live?.spec?.replicas
  if (live === undefined || replicas === undefined || !ownsReplicas(live)) return
  await client.apply(
    resource,
    { metadata: { ...key, uid }, spec: { replicas } },
    { fieldManager: HANDOVER_MANAGER, signal },
  )
}

async function readLive(o: HandOverOptions): Promise<Stored<Scaled> | undefined> {
  try {
    return await o.client.get(o.resource, o.key, { signal: o.signal })
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

function ownsReplicas(object: Stored<Scaled>): boolean {
  return (object.metadata.managedFields ?? []).some(
    (entry) =>
      entry.manager === FIELD_MANAGER && entry.operation === 'Apply' && namesReplicas(entry),
  )
}

function namesReplicas({ fieldsV1 }: ManagedFields): boolean {
  const spec = fieldsV1?.['f:spec']
  return typeof spec === 'object' && spec !== null && 'f:replicas' in spec
}
