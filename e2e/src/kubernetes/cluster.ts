import {
  freePort,
  type StartedProcess,
  startNatsServer,
  startProcess,
  withoutNatsServer,
} from '@tutti/chassis/testing'
import { type ApiServer, type PlainObject, startApiServer, withoutKube } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { find, type Rendered, render } from '../chart/helm.ts'
import { ROOT } from '../serving.ts'
import { until } from '../until.ts'
import { openImages, ROUTER_IMAGE, STEP_IMAGE } from './images.ts'
import { type ProcessKubelet, startProcessKubelet } from './process-kubelet.ts'

/** Everything that a cluster with Tutti has: all of it real but the containers, which are processes. */
export interface TuttiCluster {
  readonly api: ApiServer
  readonly kubelet: ProcessKubelet
  /** The operator: the chart's arguments and rights, as its own service account. */
  operator(): StartedProcess
  /** Kills the operator. */
  stopOperator(): Promise<void>
  startOperator(): Promise<void>
  /** Where the broker listens: it lets in whom the operator's Secret says. */
  readonly natsUrl: string
  /** A namespace with a claim `models` that is a folder of this machine. */
  createNamespace(name: string, models: string, podSecurity?: PodSecurity): Promise<void>
  /** As `kubectl apply`. */
  apply(namespace: string, manifests: readonly PlainObject[]): Promise<void>
  /** As `kubectl wait --for=condition=Ready`. @throws Error with what the operator and the pods wrote. */
  untilReady(namespace: string, manifest: PlainObject): Promise<PlainObject>
  /**
   * Waits until a Model or an Ensemble says so of its newest generation.
   *
   * @param wanted - `Ready=True`, or with a reason: `ArtifactsReady=False/FetchFailed`.
   * @throws Error with what the operator and the pods wrote.
   */
  untilSays(namespace: string, manifest: PlainObject, wanted: string): Promise<PlainObject>
  /** The address of a router of the namespace that is ready. */
  routerOf(namespace: string): Promise<string>
  /** The addresses of all that are. */
  routersOf(namespace: string): Promise<readonly string[]>
}

/** Which pods a namespace lets in: with `restricted` none with volumes of the node, say. */
export type PodSecurity = 'restricted' | 'privileged'

const NAMESPACE = 'tutti-system'
const NODES = ['process-0', 'process-1']
const TUTTI_API = '/apis/tutti.dev/v1alpha1'
const READY_MS = 240_000
const ROLES = ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']
const VALUES = { 'operator.replicas': 1, 'router.replicas': 1, 'step.allowHostPath': true }

/** For tap's `skip`: why there can be no such cluster here, or false if there can. */
export function withoutCluster(): string | false {
  return withoutKube('kube-controller-manager', 'kube-scheduler', 'helm') || withoutNatsServer()
}

/** Starts it; all of it ends with the test. */
export async function startCluster(t: Test): Promise<TuttiCluster> {
  const api = await startApiServer({ hasControllers: true })
  t.teardown(() => api.stop())
  const objects = await render(VALUES)
  await install(api, objects)
  const kubelet = await startProcessKubelet({ api, image: await openImages(t), nodes: NODES })
  t.teardown(() => kubelet.close())
  const natsPort = await freePort()
  const operator = await openOperator(
    t,
    api,
    find(objects, 'Deployment', 'tutti-operator'),
    natsPort,
  )
  await startBroker(t, api, natsPort)
  const natsUrl = `nats://127.0.0.1:${natsPort}`
  return { api, kubelet, natsUrl, ...operator, ...actions(api, kubelet, operator.operator) }
}

async function install(api: ApiServer, objects: readonly Rendered[]): Promise<void> {
  const { plain } = api
  await plain.create('/api/v1/namespaces', { metadata: { name: NAMESPACE } })
  for (const object of objects) {
    const { apiVersion, kind, metadata } = object
    if (kind === 'CustomResourceDefinition') {
      await plain.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', object)
      const { plural } = object['spec'].names
      await until(`${plural} are served`, async () => {
        return (await plain.send('GET', `${TUTTI_API}/${plural}`)).status === 200
      })
    }
    if (!ROLES.includes(kind)) continue
    const group = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
    const space = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`
    await plain.create(`${group}${space}/${kind.toLowerCase()}s`, object)
  }
}

async function openOperator(
  t: Test,
  api: ApiServer,
  { spec }: Rendered,
  natsPort: number,
): Promise<Pick<TuttiCluster, 'operator' | 'stopOperator' | 'startOperator'>> {
  const { serviceAccountName, containers } = spec.template.spec
  const args = operatorArgs(containers[0].args, natsPort)
  const env = {
    KUBERNETES_SERVICE_HOST: api.url.hostname,
    KUBERNETES_SERVICE_PORT: api.url.port,
    TUTTI_SERVICE_ACCOUNT_DIR: await api.createServiceAccountDir(NAMESPACE, serviceAccountName),
    POD_NAMESPACE: NAMESPACE,
    POD_NAME: 'tutti-operator-0',
  }
  const start = (): Promise<StartedProcess> =>
    startProcess(process.execPath, [`${ROOT}operator/dist/main.js`, ...args], {
      env,
      readyWhen: (line) => line.includes('"leading"'),
      readyTimeoutMs: 120_000,
    })
  let started = await start()
  t.teardown(() => started.stop('SIGKILL'))
  return {
    operator: () => started,
    stopOperator: async () => void (await started.stop('SIGKILL')),
    startOperator: async () => {
      started = await start()
    },
  }
}

/** The chart's, but for what is different on this machine: addresses, ports and images. */
function operatorArgs(args: readonly string[], natsPort: number): readonly string[] {
  const others: Readonly<Record<string, string>> = {
    '--health-port': '0',
    '--metrics-port': '0',
    '--step-image': STEP_IMAGE,
    '--router-image': ROUTER_IMAGE,
    '--nats': `nats://127.0.0.1:${natsPort}`,
  }
  const kept = args.filter((arg) => !Object.hasOwn(others, arg.replace(/=.*/s, '')))
  return [
    ...kept,
    ...Object.entries(others).map(([flag, value]) => `${flag}=${value}`),
    '--health-address=127.0.0.1',
    '--metrics-address=127.0.0.1',
  ]
}

/** A server as the chart's: it lets in whom the operator's Secret says. */
async function startBroker(t: Test, api: ApiServer, port: number): Promise<void> {
  const path = `/api/v1/namespaces/${NAMESPACE}/secrets/tutti-nats-server`
  const secret = await api.plain.until(path, (found) => found?.['data'] !== undefined)
  const config = Buffer.from(secret?.['data']['tenancy.conf'], 'base64').toString('utf8')
  const broker = await startNatsServer({ port, config })
  t.teardown(() => broker.stop())
}

function actions(
  api: ApiServer,
  kubelet: ProcessKubelet,
  operator: () => StartedProcess,
): Omit<
  TuttiCluster,
  'api' | 'kubelet' | 'natsUrl' | 'operator' | 'stopOperator' | 'startOperator'
> {
  const { plain } = api
  const untilSays: TuttiCluster['untilSays'] = async (namespace, manifest, wanted) => {
    const path = pathOf(namespace, manifest)
    try {
      return (await plain.until(path, (found) => says(found, wanted), READY_MS)) ?? {}
    } catch (cause) {
      const { status } = await plain.get(path)
      const seen = await describe(api, namespace)
      const lines = [...operator().lines, ...kubelet.linesOf(namespace, '')].slice(-60)
      const text = [JSON.stringify(status?.conditions), ...seen, ...lines].join('\n')
      throw new Error(`${path} does not say ${wanted}\n${text}`, { cause })
    }
  }
  const routersOf = (namespace: string): Promise<readonly string[]> => readyRouters(api, namespace)
  return {
    createNamespace: (...named) => createNamespace(api, ...named),
    apply: async (namespace, manifests) => {
      for (const manifest of manifests) {
        await plain.apply(pathOf(namespace, manifest), manifest)
      }
    },
    untilSays,
    untilReady: (namespace, manifest) => untilSays(namespace, manifest, 'Ready=True'),
    routersOf,
    routerOf: async (namespace) => {
      const [address] = await routersOf(namespace)
      if (address === undefined) throw new Error(`no router of ${namespace} is ready`)
      return address
    },
  }
}

async function readyRouters({ plain }: ApiServer, namespace: string): Promise<readonly string[]> {
  const query = 'labelSelector=app.kubernetes.io/component%3Drouter'
  const pods = await plain.list(`/api/v1/namespaces/${namespace}/pods?${query}`)
  const ready = pods.filter(({ metadata, status }) => {
    const conditions: readonly PlainObject[] = status?.conditions ?? []
    const takesRequests = conditions.some(
      (condition) => condition['type'] === 'Ready' && condition['status'] === 'True',
    )
    return takesRequests && metadata.deletionTimestamp === undefined
  })
  return ready.map(({ status }) => status.podIP)
}

/** What became of a namespace's pods, and what was said about it. */
async function describe({ plain }: ApiServer, namespace: string): Promise<readonly string[]> {
  const pods = await plain.list(`/api/v1/namespaces/${namespace}/pods`)
  const events = await plain.list(`/api/v1/namespaces/${namespace}/events`)
  return [
    ...pods.map(({ metadata, status }) => `pod ${metadata.name}: ${JSON.stringify(status)}`),
    ...events.map(({ involvedObject, reason, message }) => {
      return `${involvedObject.kind} ${involvedObject.name}: ${reason}: ${message}`
    }),
  ]
}

/** Whether it has such a condition, of the newest generation. */
function says(found: PlainObject | undefined, wanted: string): boolean {
  const conditions: readonly PlainObject[] = found?.['status']?.conditions ?? []
  return conditions.some(({ type, status, reason, observedGeneration: seen }) => {
    const texts = [`${type}=${status}`, `${type}=${status}/${reason}`]
    return texts.includes(wanted) && seen === found?.['metadata'].generation
  })
}

/** Where a Model or an Ensemble is. */
export function pathOf(namespace: string, { kind, metadata }: PlainObject): string {
  return `${TUTTI_API}/namespaces/${namespace}/${kind.toLowerCase()}s/${metadata.name}`
}

async function createNamespace(
  { plain }: ApiServer,
  name: string,
  models: string,
  podSecurity: PodSecurity = 'restricted',
): Promise<void> {
  const labels = { 'pod-security.kubernetes.io/enforce': podSecurity }
  await plain.create('/api/v1/namespaces', { metadata: { name, labels } })
  const capacity = { storage: '10Gi' }
  const accessModes = ['ReadWriteMany']
  const claimRef = { namespace: name, name: 'models' }
  await plain.create('/api/v1/persistentvolumes', {
    metadata: { name: `${name}-models` },
    spec: { capacity, accessModes, claimRef, hostPath: { path: models }, storageClassName: '' },
  })
  const claims = `/api/v1/namespaces/${name}/persistentvolumeclaims`
  await plain.create(claims, {
    metadata: { name: 'models' },
    spec: {
      accessModes,
      storageClassName: '',
      volumeName: `${name}-models`,
      resources: { requests: capacity },
    },
  })
  await plain.until(`${claims}/models`, (claim) => claim?.['status']?.phase === 'Bound')
}
