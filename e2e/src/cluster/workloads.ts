import type { PlainObject } from '@tutti/kube/testing'
import { clusterClient, isReady, kubectl, runKubeProgram, unreadyPods } from './kubectl.ts'

const PATIENCE = '--timeout=300s'
const LONGEST_MS = 300_000

/** Opens the pods of one namespace for a test: what it does to them, and how it sees that they have come to rest. */
export function openWorkloads(namespace: string) {
  const inSpace = `--namespace=${namespace}`
  const listOf = (selector: string): string =>
    `/api/v1/namespaces/${namespace}/pods?labelSelector=${encodeURIComponent(selector)}`
  const waitFor = (
    what: string,
    selector: string,
    fits: (pods: readonly PlainObject[]) => boolean,
  ): Promise<void> =>
    clusterClient()
      .untilList(listOf(selector), fits, LONGEST_MS)
      .catch(async (error: Error) => {
        const text = `waited in vain until ${what}: ${error.message}`
        throw new Error(`${text}${await unreadyPods([inSpace])}`, { cause: error })
      })
  return {
    /** Merges something into the spec of a resource. */
    change: async (
      kind: 'model' | 'ensemble' | 'routers.tutti.dev',
      name: string,
      spec: object,
    ): Promise<void> => {
      const patch = JSON.stringify({ spec })
      await kubectl('patch', kind, name, inSpace, '--type=merge', `--patch=${patch}`)
    },
    /** The pods of a component, e.g. `tutti.dev/model=x`, that do not end. */
    pods: async (selector: string): Promise<readonly PlainObject[]> => {
      const pods = await clusterClient().list(listOf(selector))
      return pods.filter((pod) => !isEnding(pod))
    },
    /** Waits until the pods that there are, those that end too, are as they are wanted. */
    until: waitFor,
    /** Waits until there are so many pods, all Ready and as they are wanted, and no other is left. */
    settled: (
      selector: string,
      replicas: number,
      isWanted: (pod: PlainObject) => boolean = () => true,
    ): Promise<void> =>
      waitFor(`${replicas} pods of ${selector} are as wanted`, selector, (pods) => {
        return pods.length === replicas && pods.every((pod) => isSteady(pod) && isWanted(pod))
      }),
    /** As a drain of the node would. */
    evict: async ({ metadata }: PlainObject): Promise<void> => {
      const eviction = {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { namespace, name: metadata.name },
      }
      const path = `/api/v1/namespaces/${namespace}/pods/${metadata.name}/eviction`
      const args = ['create', '--raw', path, '--filename=-']
      await runKubeProgram('kubectl', args, { input: JSON.stringify(eviction) })
    },
  }
}

/** Waits until a Deployment has rolled out. */
export function rolledOut(namespace: string, name: string): Promise<string> {
  return kubectl('rollout', 'status', `deployment/${name}`, `--namespace=${namespace}`, PATIENCE)
}

function isSteady(pod: PlainObject): boolean {
  return !isEnding(pod) && isReady(pod['status'])
}

/** It has been deleted, and its processes may still run. */
export function isEnding({ metadata }: PlainObject): boolean {
  return metadata.deletionTimestamp !== undefined
}

/** The container that serves. */
export function mainOf(pod: PlainObject): PlainObject {
  const containers: readonly PlainObject[] = pod['spec'].containers
  const main = containers.find(({ name }) => name === 'main')
  if (main === undefined) throw new Error(`pod ${pod['metadata'].name} has no container main`)
  return main
}
