import { type Clock, type Logger, sleep } from '@tutti/chassis'
import {
  type Client,
  DEPLOYMENT,
  isConflict,
  isNotFound,
  type KubeObject,
  keyOf,
  type ObjectKey,
  POD,
  type Resource,
  SECRET,
  type Stored,
} from '@tutti/kube'
import { NATS_SECRETS } from '../nats/nats-tenancy.ts'
import { ROUTER_KINDS } from '../resources/build-router-set.ts'
import { ROUTER_LABEL_SELECTOR, ROUTER_NAMES } from '../resources/router-names.ts'
import { FIELD_MANAGER, isManaged, toSelector } from '../runtime/children.ts'

export interface RemovalOptions {
  readonly client: Pick<Client, 'get' | 'list' | 'delete' | 'mergePatch'>
  /** The operator's Deployment. */
  readonly operator: ObjectKey
  /** Which are looked at; all if there is none. */
  readonly namespaces: readonly string[]
  /** For the operator's pods to end, milliseconds. */
  readonly waitMs: number
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Secrets of a router set: nobody may list Secrets for this. */
const SECRETS: readonly string[] = [NATS_SECRETS.credentials, ROUTER_NAMES.edge]
/** What a router set is made of beside them: pods first, which use the rest. */
const KINDS = ROUTER_KINDS.toReversed().filter((resource) => resource !== SECRET)
const POLL_MS = 1000

/**
 * Removes the routers of all namespaces with what belongs to them: no Model or Ensemble owns them, so nobody else would once the
 * operator is gone. Stops the operator first, which would make them anew. Models, Ensembles and steps stay.
 *
 * @throws KubeError; Error if the operator does not end.
 */
export async function removeRouterSets(o: RemovalOptions): Promise<void> {
  await stopOperator(o)
  const namespaces = new Set<string>()
  for (const resource of KINDS) {
    const objects = await listAll(resource, o)
    for (const { metadata } of objects) namespaces.add(metadata.namespace ?? '')
    // Before the last kind: whoever tries again after a failure finds the namespaces by it.
    if (resource === KINDS.at(-1)) await removeSecrets(namespaces, o)
    for (const object of objects) await remove(resource, object, o)
  }
}

async function removeSecrets(namespaces: Iterable<string>, o: RemovalOptions): Promise<void> {
  for (const namespace of namespaces) {
    for (const name of SECRETS) {
      const secret = await orAbsent(o.client.get(SECRET, { namespace, name }, { signal: o.signal }))
      if (secret !== undefined && isManaged(secret)) await remove(SECRET, secret, o)
    }
  }
}

async function stopOperator(o: RemovalOptions): Promise<void> {
  const { client, operator, signal } = o
  const deployment = await orAbsent(client.get(DEPLOYMENT, operator, { signal }))
  if (deployment === undefined) return
  await client.mergePatch(DEPLOYMENT, operator, {
    subresource: 'scale',
    patch: { spec: { replicas: 0 } },
    fieldManager: FIELD_MANAGER,
    signal,
  })
  const labelSelector = toSelector(deployment.spec.selector.matchLabels ?? {})
  const listed = { labelSelector, signal, namespace: operator.namespace ?? '' }
  const deadline = o.clock.now() + o.waitMs
  for (;;) {
    const { items } = await client.list(POD, listed)
    if (items.length === 0) return
    if (o.clock.now() > deadline) {
      const names = items.map(({ metadata }) => metadata.name).join(', ')
      throw new Error(`the operator's pods do not end: ${names}`)
    }
    await sleep(POLL_MS, { clock: o.clock, signal })
  }
}

async function listAll(
  resource: Resource,
  { client, namespaces, signal }: RemovalOptions,
): Promise<Stored<KubeObject>[]> {
  const o = { labelSelector: ROUTER_LABEL_SELECTOR, signal }
  if (namespaces.length === 0) return [...(await client.list(resource, o)).items]
  const lists = await Promise.all(
    namespaces.map((namespace) => client.list(resource, { ...o, namespace })),
  )
  return lists.flatMap(({ items }) => items)
}

async function remove(
  resource: Resource,
  object: Stored<KubeObject>,
  { client, log, signal }: RemovalOptions,
): Promise<void> {
  const key = keyOf(object)
  try {
    await client.delete(resource, key, { preconditions: { uid: object.metadata.uid }, signal })
    log.info('removed', { kind: resource.kind, ...key })
  } catch (error) {
    // It went meanwhile, or another one of its name is there, which is not ours to judge.
    if (!isNotFound(error) && !isConflict(error)) throw error
  }
}

async function orAbsent<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
