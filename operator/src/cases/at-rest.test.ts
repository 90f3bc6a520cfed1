// needs: apiserver
import { join } from 'node:path'
import { ensembleManifest, modelManifest } from '@tutti/api/testing'
import { type StartedProcess, startProcess } from '@tutti/chassis/testing'
import {
  type ApiServer,
  type CountedWrite,
  type HttpFaultProxy,
  type PlainObject,
  startApiServer,
  startHttpFaultProxy,
  withoutKube,
} from '@tutti/kube/testing'
import t, { type Test } from 'tap'
import { openCaseRig } from '../testing/case-rig.ts'
import { ensureIssuer, ISSUER_FLAGS } from '../testing/nats-issuer.ts'
import { bindAdmin, installCrds } from '../testing/prepare-server.ts'

const PROGRAM = join(import.meta.dirname, '..', 'main.ts')
const LEASE = '/apis/coordination.k8s.io/v1/namespaces/tutti-system/leases/tutti-operator'
const FLAGS = [
  '--health-port=0',
  '--metrics-port=0',
  ...ISSUER_FLAGS,
  '--leader-elect-lease-duration=30',
  '--leader-elect-renew-deadline=20',
  '--leader-elect-retry-period=1',
]
const NAMESPACES = 3
const target = { type: 'Utilization', averageUtilization: 70 }
const CPU = { type: 'Resource', resource: { name: 'cpu', target } }
/** Each differs from the others in what is made for it. */
const SPECS: readonly PlainObject[] = [
  {},
  { scaling: { provider: 'Native', minReplicas: 1, maxReplicas: 4, target: 8 } },
  { scaling: { provider: 'HPA', minReplicas: 1, maxReplicas: 4, metrics: [CPU] } },
  { scaling: { provider: 'None', replicas: 3 }, disruptionBudget: { maxUnavailable: 1 } },
  { modelFormat: { name: 'python' }, instances: { count: 2 }, timeouts: { drain: '1m' } },
  { accelerator: { resourceName: 'nvidia.com/gpu', count: 1, tolerations: [{ key: 'gpu' }] } },
  { resources: { requests: { cpu: '500m', memory: '1Gi' }, limits: { cpu: '2' } } },
  { podTemplate: { spec: { priorityClassName: 'high', nodeSelector: { disk: 'ssd' } } } },
]
const MODELS = NAMESPACES * SPECS.length
/** Renewals of the lease, while nothing else may be written. */
const RENEWALS = 4

interface Operator {
  readonly process: StartedProcess
  readonly proxy: HttpFaultProxy
  /** Resolves when every Model has been looked at, and then for some renewals nothing but the lease was written. */
  rest(): Promise<void>
}

const isRenewal = ({ path }: CountedWrite): boolean => path === LEASE

async function startOperator(t: Test, server: ApiServer): Promise<Operator> {
  const serviceAccount = await server.createServiceAccountDir('tutti-system', 'operator')
  await ensureIssuer(server.plain, 'tutti-system')
  const proxy = await startHttpFaultProxy(server, { isCounted: () => true })
  const started = await startProcess(process.execPath, [PROGRAM, ...FLAGS], {
    env: {
      POD_NAMESPACE: 'tutti-system',
      KUBERNETES_SERVICE_HOST: proxy.url.hostname,
      KUBERNETES_SERVICE_PORT: proxy.url.port,
      TUTTI_SERVICE_ACCOUNT_DIR: serviceAccount,
    },
    readyWhen: (line) => line.includes('"message":"leading"'),
    readyTimeoutMs: 60_000,
  })
  t.teardown(async () => {
    await started.stop('SIGKILL')
    await proxy.close()
  })
  const ports = JSON.parse(
    await started.waitForLine((line) => line.includes('probes and metrics are answered')),
  )
  return {
    process: started,
    proxy,
    rest: async () => {
      while ((await looksAt(ports.metrics)) < MODELS) await renewed(proxy)
      for (let at = -1; at !== countOthers(proxy); ) {
        at = countOthers(proxy)
        for (let renewals = 0; renewals < RENEWALS; renewals += 1) await renewed(proxy)
      }
    },
  }
}

function countOthers({ writes }: HttpFaultProxy): number {
  return writes.filter((write) => !isRenewal(write)).length
}

/** Resolves with the next renewal of the lease. */
async function renewed(proxy: HttpFaultProxy): Promise<void> {
  const count = (): number => proxy.writes.filter(isRenewal).length
  for (const before = count(); count() === before; ) {
    await new Promise<void>((resolve) => proxy.onWrite(1, { after: () => resolve() }))
  }
}

/** Reconciles of Models so far. */
async function looksAt(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const series = text
    .split('\n')
    .filter((line) => line.startsWith('controller_runtime_reconcile_total{controller="model"'))
  return series.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

async function prepare({ plain }: ApiServer): Promise<void> {
  await bindAdmin(plain, 'tutti-system')
  for (let i = 0; i < NAMESPACES; i += 1) {
    const namespace = `ns-${i}`
    await plain.create('/api/v1/namespaces', { metadata: { name: namespace } })
    const path = `/apis/tutti.dev/v1alpha1/namespaces/${namespace}`
    for (const [at, spec] of SPECS.entries()) {
      await plain.create(`${path}/models`, modelManifest(`m${at}`, spec))
    }
    const expose = { ingress: { className: 'nginx', hosts: ['e.example.com'] } }
    await plain.create(`${path}/ensembles`, ensembleManifest('e', { expose }))
  }
}

await t.test('the lease apart, nothing is written at rest', { skip: withoutKube() }, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  await installCrds(server)
  await prepare(server)

  const first = await startOperator(t, server)
  await first.rest()
  const deployments = await server.plain.list('/apis/apps/v1/deployments')
  t.equal(deployments.length, MODELS + NAMESPACES, 'all was made')
  t.same(await first.process.stop('SIGTERM'), { code: 0, signal: null })

  const second = await startOperator(t, server)
  await second.rest()
  const written = second.proxy.writes.filter((write) => !isRenewal(write))
  t.same(
    written.map(({ method, path }) => `${method} ${path}`),
    [],
    'nor by a process that finds all of it there',
  )
})

const SKIP = { skip: withoutKube('kube-controller-manager', 'kube-scheduler') }

await t.test('a restart beside what serves writes nothing', SKIP, async (t) => {
  const rig = await openCaseRig(t)
  const place = await rig.openPlace()
  const first = await place.startOperator(t)
  await place.applyModel('yolo', { scaling: { minReplicas: 2, maxReplicas: 4, target: 8 } })
  await place.applyEnsemble('ens', 'yolo')
  await place.ready('models', 'yolo')
  await place.ready('ensembles', 'ens')
  await first.atRest()
  const before = await place.look()
  await first.stop()
  const second = await place.startOperator(t)
  await second.atRest()
  t.same(
    second.proxy.writes.map(({ method, path }) => `${method} ${path}`),
    [],
  )
  t.same(await place.look(), before)
})
