import type { PlainObject } from '@tutti/kube/testing'
import { InferenceClient } from '@tutti/protocol'
import type { Test } from 'tap'
import { row } from '../tensors.ts'
import { until } from '../until.ts'
import { pathOf, type TuttiCluster } from './cluster.ts'
import { UNNAMED } from './first-requests.ts'

/** A namespace as `openTwoRouters` makes it. */
export interface TwoNodes {
  readonly cluster: TuttiCluster
  readonly namespace: string
}

const TOLERATION = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1 }
const MODEL = {
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Model',
  metadata: { name: 'on-both-nodes' },
  spec: {
    modelFormat: { name: 'onnx' },
    storageUri: UNNAMED,
    scaling: { minReplicas: 2, maxReplicas: 2 },
    // Kubernetes waits for five minutes otherwise.
    podTemplate: {
      spec: { tolerations: [{ ...TOLERATION, key: 'node.kubernetes.io/unreachable' }] },
    },
  },
}

const MAY_HAVE_EXECUTED = 'is gone; it may have executed'

/** A node is lost for good: requests are answered all the while, but the one that may have been at it, and the Model says what it has, until it has all again. */
export async function showLostNode(t: Test, { cluster, namespace }: TwoNodes): Promise<void> {
  const { plain } = cluster.api
  const pods = `/api/v1/namespaces/${namespace}/pods`
  const labelled = (label: string, value: string): Promise<PlainObject[]> =>
    plain.list(`${pods}?labelSelector=${encodeURIComponent(`${label}=${value}`)}`)
  await cluster.apply(namespace, [MODEL])
  await cluster.untilReady(namespace, MODEL)
  const steps = await labelled('tutti.dev/model', MODEL.metadata.name)
  const nodes = steps.map(({ spec }): string => spec.nodeName)
  t.same(nodes.toSorted(), ['process-0', 'process-1'], 'replicas are spread')
  const [router] = await labelled('app.kubernetes.io/component', 'router')
  const kept: string = router?.['spec'].nodeName
  const lost = nodes.find((node) => node !== kept) ?? ''

  const client = new InferenceClient({ address: `${router?.['status'].podIP}:8001` })
  t.teardown(() => client.close())
  const asking = new AbortController()
  const asked = askAlways(client, asking.signal)
  await cluster.kubelet.loseNode(lost)
  const model = await cluster.untilSays(namespace, MODEL, 'WorkloadAvailable=False/PodsNotReady')
  t.match(model['status'], { readyReplicas: 1, desiredReplicas: 2 })
  await cluster.untilReady(namespace, MODEL)
  asking.abort()
  const { answers, failures } = await asked
  t.ok(answers > 0)
  // One request is on its way at a time. Where it was at the lost replica, nobody can say whether it was executed.
  const [failure = MAY_HAVE_EXECUTED, ...others] = failures
  t.match(failure, MAY_HAVE_EXECUTED, `${answers} answers meanwhile`)
  t.same(others, [])
  const alive = await until('the other node has both', async () => {
    const now = await labelled('tutti.dev/model', MODEL.metadata.name)
    const ready = now.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    return ready.length === 2 ? ready : undefined
  })
  t.same(
    alive.map(({ spec }) => spec.nodeName),
    [kept, kept],
  )
  await plain.delete(pathOf(namespace, MODEL))
}

async function askAlways(
  client: InferenceClient,
  signal: AbortSignal,
): Promise<{ readonly answers: number; readonly failures: readonly string[] }> {
  const request = { modelName: MODEL.metadata.name, inputs: [row('X')] }
  const failures: string[] = []
  let answers = 0
  while (!signal.aborted) {
    try {
      await client.infer(request)
      answers += 1
    } catch (error) {
      failures.push(String(error))
    }
  }
  return { answers, failures }
}
