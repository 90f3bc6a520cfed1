import { until } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import { getObject, isReady, kubectl, runKubeProgram, unreadyPods } from './kubectl.ts'

const PATIENCE = '--timeout=300s'

/** What a test does to the pods of one namespace, and how it sees that they have come to rest. */
export function openWorkloads(namespace: string) {
  const inSpace = `--namespace=${namespace}`
  const all = async (selector: string): Promise<readonly PlainObject[]> =>
    (await getObject('pods', inSpace, `--selector=${selector}`))['items']
  return {
    /** Merges something into the spec of a resource. */
    change: async (kind: 'model' | 'ensemble', name: string, spec: object): Promise<void> => {
      const patch = JSON.stringify({ spec })
      await kubectl('patch', kind, name, inSpace, '--type=merge', `--patch=${patch}`)
    },
    /** The pods of a component, e.g. `tutti.dev/model=x`, that do not end. */
    pods: async (selector: string): Promise<readonly PlainObject[]> => {
      const pods = await all(selector)
      return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    },
    /** Waits until there are so many pods, all Ready and as they are wanted, and no other any more. */
    settled: (
      selector: string,
      replicas: number,
      isWanted: (pod: PlainObject) => boolean = () => true,
    ) =>
      until(`${replicas} pods of ${selector} are as wanted`, async () => {
        const pods = await all(selector)
        return pods.length === replicas && pods.every((pod) => isSteady(pod) && isWanted(pod))
      }).catch(async (error: Error) => {
        throw new Error(`${error.message}${await unreadyPods([inSpace])}`, { cause: error })
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

function isSteady({ metadata, status }: PlainObject): boolean {
  return metadata.deletionTimestamp === undefined && isReady(status)
}

/** The container that serves. */
export function mainOf(pod: PlainObject): PlainObject {
  const containers: readonly PlainObject[] = pod['spec'].containers
  const main = containers.find(({ name }) => name === 'main')
  if (main === undefined) throw new Error(`pod ${pod['metadata'].name} has no container main`)
  return main
}
