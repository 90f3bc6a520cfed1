import type { PlainObject } from '@tutti/kube/testing'
import type { ModelCluster } from './model-cluster.ts'
import { isGone, pathsIn } from './namespaced.ts'

/** The status of a pod whose init container fails again and again. */
export const FETCH_FAILED: PlainObject = {
  phase: 'Pending',
  initContainerStatuses: [
    {
      name: 'fetch',
      image: 'x',
      imageID: 'x',
      ready: false,
      restartCount: 3,
      state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s' } },
      lastState: { terminated: { exitCode: 12, reason: 'Error', message: 'digest differs' } },
    },
  ],
}

/** The functions that return the collection paths of Deployments, ControllerRevisions and Services in a namespace. */
export const COLLECTIONS = ['deployments', 'controllerrevisions', 'services'].map(
  (plural) => (namespace: string) => pathsIn(namespace)(plural),
)

/** Resolves when all objects that a collection holds now are gone. */
export async function gone({ plain }: ModelCluster, collection: string): Promise<void> {
  for (const { metadata } of await plain.list(collection)) {
    await plain.until(`${collection}/${metadata.name}`, isGone)
  }
}

/** Returns the digest of the fetch credentials in a Deployment's pod template; undefined without one. */
export function credentialsOf(deployment: PlainObject): string | undefined {
  return deployment['spec']?.template.metadata.annotations['tutti.dev/credentials']
}

/** Returns for each step pod of a namespace whether its readiness gate is open. */
export async function gatesOf({ plain }: ModelCluster, namespace: string): Promise<boolean[]> {
  const pods = await plain.list(
    `/api/v1/namespaces/${namespace}/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dstep`,
  )
  return pods.map((pod) =>
    (pod['status'].conditions ?? []).some(
      (condition: PlainObject) =>
        condition['type'].startsWith('accepted.tutti.dev/') && condition['status'] === 'True',
    ),
  )
}

export function revisionsOf({ plain }: ModelCluster, namespace: string): Promise<PlainObject[]> {
  return plain.list(pathsIn(namespace)('controllerrevisions'))
}

/** Returns the resourceVersions of all Models and of their main children, by `KIND/NAME`. */
export async function versionsOf({ plain }: ModelCluster, namespace: string): Promise<PlainObject> {
  const lists = await Promise.all(
    [...COLLECTIONS.map((path) => path(namespace)), pathsIn(namespace)('models')].map((path) =>
      plain.list(path),
    ),
  )
  return Object.fromEntries(
    lists
      .flat()
      .map((one) => [`${one['kind']}/${one['metadata'].name}`, one['metadata'].resourceVersion]),
  )
}

/** Resolves when no reconcile of Models has run for 20 looks in a row, one each 20 ms. */
export async function settled({ controller }: ModelCluster): Promise<void> {
  for (let quiet = 0; quiet < 20; ) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    quiet = controller.inFlight === 0 ? quiet + 1 : 0
  }
}
