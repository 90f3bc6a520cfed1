import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { parsedEnsemble } from '@tutti/api/testing'
import { checkEnsemble, toAcceptedJson } from '@tutti/graph'
import { takeForwards } from '@tutti/kube/testing'
import { modelConfig } from '@tutti/model-config/testing'
import type { Test } from 'tap'
import { z } from 'zod'

const AddressInfo = z.object({ port: z.number() })
const CREATED = '2026-11-27T09:00:00Z'

const object = (kind: string, name: string, more: object) => ({
  apiVersion: 'tutti.dev/v1alpha1',
  kind,
  metadata: {
    name,
    namespace: 'default',
    uid: `uid-${name}`,
    resourceVersion: '1',
    creationTimestamp: CREATED,
    generation: 1,
  },
  ...more,
})

const typed = (name: string) => ({ name, datatype: 'FP32', shape: [4] }) as const

/** Builds the pod of a router. @param status - whether the pod is ready. */
export function routerPod(
  name: string,
  status: 'True' | 'False',
  ports?: readonly object[],
): object {
  const { metadata, ...pod } = object('Pod', name, {
    spec: { containers: [{ name: 'main', ports }] },
    status: { conditions: [{ type: 'Ready', status }] },
  })
  return { ...pod, metadata: { ...metadata, labels: { 'app.kubernetes.io/component': 'router' } } }
}

/** Builds the Deployment of a step or a router, with one pod. */
export function deployment(name: string, labels: object, status: object): object {
  const { metadata, ...rest } = object('Deployment', name, {
    spec: { replicas: 1, selector: {}, template: {} },
    status: { observedGeneration: 1, ...status },
  })
  return { ...rest, metadata: { ...metadata, labels } }
}

function nameIn(all: Readonly<Record<string, readonly object[]>>, name: string): unknown {
  const named = z.object({ metadata: z.object({ name: z.literal(name) }) })
  return Object.values(all)
    .flat()
    .find((one) => named.safeParse(one).success)
}

/** Builds what an operator has accepted of the Ensemble, before it was edited. */
function acceptedRevision(): object {
  const ensemble = parsedEnsemble('ens', {
    maxBatchSize: 8,
    inputs: [typed('in')],
    outputs: [{ name: 'out', from: 'a.y' }],
    steps: [{ name: 'a', modelRef: { name: 'slow' }, inputMap: { x: 'in' } }],
  })
  const slow = modelConfig({
    name: 'slow',
    max_batch_size: 8,
    input: [{ name: 'x' }],
    output: [{ name: 'y' }],
  })
  const check = checkEnsemble(ensemble, { lookup: () => ({ config: slow, readyVersions: [1] }) })
  if (!check.accepted) throw new Error(check.message)
  const { config, graph, models } = check
  const resource = { name: 'ens', uid: 'uid-ens', generation: 1 }
  const data = toAcceptedJson({
    kind: 'Ensemble',
    modelName: 'ens',
    resource,
    config,
    graph,
    models,
  })
  const revision = object('ControllerRevision', 'ens-1', { revision: 1, data })
  return { ...revision, metadata: { ...revision.metadata, ownerReferences: [{ uid: 'uid-ens' }] } }
}

/** A Model that is not ready, and an Ensemble that runs it and one that is missing. */
const ITEMS: Readonly<Record<string, readonly object[]>> = {
  ensembles: [
    object('Ensemble', 'ens', {
      spec: {
        steps: [
          { name: 'a', modelRef: { name: 'slow' } },
          { name: 'b', modelRef: { name: 'none' } },
        ],
      },
      status: { observedGeneration: 1, stepsReady: '0/2' },
    }),
  ],
  models: [
    object('Model', 'slow', { spec: {}, status: { readyReplicas: 0, desiredReplicas: 1 } }),
    object('Model', 'alone', { spec: {} }),
  ],
  controllerrevisions: [acceptedRevision()],
  routers: [object('Router', 'tutti', { status: { readyReplicas: 1, replicas: 2 } })],
}

const KINDS = ['models', 'ensembles', 'routers'].map((name) => ({ name }))
/** Answers to what is asked for beside lists. */
const OTHER_ANSWERS: Readonly<Record<string, object>> = {
  '/version': { gitVersion: 'v1.33.2+k3s1' },
  '/apis': { groups: [{ name: 'tutti.dev' }] },
  '/apis/tutti.dev/v1alpha1': { resources: KINDS },
  '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews': { status: { allowed: false } },
}

/**
 * Starts a server that answers lists as an API server does, until the test ends. Users may list Tutti's resources and nothing
 * else. A patch changes nothing.
 *
 * @param o.status - HTTP status of all answers, with a refusal unless it is 200; absent to answer each request by itself.
 * @param o.unpatchable - names of the objects whose patch the server refuses.
 * @param o.items - further objects, by the plural of their kind.
 * @param o.ports - port of a pod -> port of this machine that it is forwarded to; without any, forwards are refused.
 * @returns the path of a kubeconfig for the server.
 */
export async function startListServer(
  t: Test,
  o: {
    readonly status?: number
    readonly unpatchable?: readonly string[]
    readonly items?: Readonly<Record<string, readonly object[]>>
    readonly ports?: Readonly<Record<string, number>>
  } = {},
): Promise<string> {
  const lists = { ...ITEMS, ...o.items }
  const patch = (name: string): unknown =>
    o.unpatchable?.includes(name) === true ? undefined : nameIn(lists, name)
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://x')
    const last = pathname.split('/').at(-1) ?? ''
    const items = lists[last]
    const list = items && { kind: 'List', metadata: { resourceVersion: '1' }, items }
    const patched = request.method === 'PATCH' ? patch(last) : undefined
    const answer = OTHER_ANSWERS[pathname] ?? list ?? patched
    const code = o.status ?? (answer === undefined ? 403 : 200)
    response.writeHead(code, { 'content-type': 'application/json' })
    const message = code === 401 ? 'Unauthorized' : 'forbidden'
    const body = code === 200 ? answer : { kind: 'Status', code, message }
    response.end(JSON.stringify(body))
  })
  if (o.ports !== undefined) takeForwards(server, o.ports)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const { port } = AddressInfo.parse(server.address())
  const config = {
    'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    contexts: [{ name: 'x', context: { cluster: 'c' } }],
  }
  const file = join(t.testdir(), 'kubeconfig')
  await writeFile(file, JSON.stringify(config))
  return file
}
