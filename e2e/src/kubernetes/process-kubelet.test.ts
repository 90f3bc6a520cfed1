// needs: nats, apiserver, python
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { startNatsServer, withoutNatsServer } from '@tutti/chassis/testing'
import {
  type ApiServer,
  type PlainClient,
  type PlainObject,
  startApiServer,
  withoutKube,
} from '@tutti/kube/testing'
import { InferenceClient } from '@tutti/protocol'
import t, { type Test } from 'tap'
import { BASIC } from '../temp-repository.ts'
import { row } from '../tensors.ts'
import { until } from '../until.ts'
import { openImages, STEP_IMAGE } from './images.ts'
import { mapPaths, toPodCommand } from './pod-commands.ts'
import { PodVolumes } from './pod-volumes.ts'
import { type ProcessKubelet, startProcessKubelet } from './process-kubelet.ts'

t.setTimeout(600_000)

const SKIP = withoutKube('kube-controller-manager', 'kube-scheduler') || withoutNatsServer()
const PODS = '/api/v1/namespaces/default/pods'
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments'

await t.test('paths are replaced where they stand for a mount, and nowhere else', async (t) => {
  const mappings = [
    { mountPath: '/tmp', path: '/real/tmp/a' },
    { mountPath: '/models/model', path: '/data/m' },
    { mountPath: '/models', path: '/tmp/models' },
  ]
  for (const [text, wanted] of [
    ['/tmp', '/real/tmp/a'],
    ['name=/models/model', 'name=/data/m'],
    ['/models/model/1:/tmp/x', '/data/m/1:/real/tmp/a/x'],
    ['/models/other', '/tmp/models/other'],
    ['/var/tmp', '/var/tmp'],
    ['/tmpfiles', '/tmpfiles'],
    ['/models/model-2', '/tmp/models/model-2'],
    ['{"file":"/models/model"}', '{"file":"/data/m"}'],
  ] as const) {
    t.equal(mapPaths(text, mappings), wanted)
  }
})

await t.test('a volume wants the keys that it names', async (t) => {
  const data = { here: Buffer.from('text').toString('base64') }
  const plain = { get: async () => ({ data }) } as unknown as PlainClient
  const sync = async (source: PlainObject) => {
    const volumes = [{ name: 'v', secret: { secretName: 's', ...source } }]
    const pod = { metadata: { namespace: 'n' }, spec: { volumes } }
    const folder = t.testdir()
    await new PodVolumes(pod, plain, folder).sync()
    return (await readdir(join(folder, 'v'))).toSorted()
  }
  const items = ['here', 'gone'].map((key) => ({ key, path: key }))
  await t.rejects(sync({ items }), { message: 'secrets/s has no key gone' })
  t.same(await sync({ items, optional: true }), ['here'])
  t.same(await sync({}), ['here'])
})

await t.test('a container becomes a process at the address of its pod', async (t) => {
  const pod = { metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { nodeName: 'x' } }
  const container = {
    name: 'main',
    command: ['run', 'it'],
    args: ['--dir=/data'],
    ports: [{ containerPort: 1 }],
    env: [
      { name: 'HOME', value: '/data' },
      { name: 'WHO', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    ],
  }
  const o = {
    pod,
    container,
    podIp: '127.98.0.1',
    programs: { run: { command: ['/bin/run'], addressFlags: ['--address'] } },
    mappings: [{ mountPath: '/data', path: '/x' }],
    env: { PATH: '/bin' },
  }
  t.same(toPodCommand(o), {
    command: ['/bin/run', 'it', '--dir=/x', '--address=127.98.0.1'],
    env: { PATH: '/bin', HOME: '/x', WHO: 'p' },
  })
  t.throws(() => toPodCommand({ ...o, programs: {} }), /command run, want one of/)
  t.same(toPodCommand({ ...o, container: { ...container, ports: [] } }).command.length, 3)
})

interface Rig {
  readonly api: ApiServer
  readonly kubelet: ProcessKubelet
  readonly natsUrl: string
}

async function openRig(t: Test): Promise<Rig> {
  const api = await startApiServer({ hasControllers: true })
  t.teardown(() => api.stop())
  const nats = await startNatsServer()
  t.teardown(() => nats.stop())
  const kubelet = await startProcessKubelet({ api, image: await openImages(t) })
  t.teardown(() => kubelet.close())
  await api.plain.until('/api/v1/namespaces/default/serviceaccounts/default', Boolean)
  return { api, kubelet, natsUrl: nats.url }
}

function probe(path: string) {
  return { httpGet: { path, port: 'metrics' }, timeoutSeconds: 5 }
}

function deployment(natsUrl: string, o: { readonly more?: PlainObject } = {}): PlainObject {
  const labels = { app: 'step' }
  const args = ['--model-directory', 'identity_fp32=/models/model', '--nats', natsUrl]
  const ports = { http: 8000, grpc: 8001, metrics: 8002 }
  const main = {
    name: 'main',
    image: STEP_IMAGE,
    command: ['tutti-step'],
    args: [
      ...args,
      ...Object.entries(ports).flatMap(([name, port]) => [`--${name}-port`, `${port}`]),
    ],
    env: [{ name: 'HOME', value: '/tmp' }],
    ports: Object.entries(ports).map(([name, containerPort]) => ({ name, containerPort })),
    resources: { limits: { 'nvidia.com/gpu': '1' } },
    volumeMounts: [
      { name: 'model', mountPath: '/models/model', readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
    ],
    startupProbe: { ...probe('/readyz'), periodSeconds: 1, failureThreshold: 300 },
    readinessProbe: { ...probe('/readyz'), periodSeconds: 1 },
    // It takes the times of all failures, and then the grace.
    livenessProbe: { ...probe('/livez'), periodSeconds: 1, timeoutSeconds: 3, failureThreshold: 2 },
    lifecycle: { preStop: { sleep: { seconds: 1 } } },
    ...o.more,
  }
  const volumes = [
    { name: 'model', hostPath: { path: join(BASIC, 'identity_fp32'), type: 'Directory' } },
    { name: 'tmp', emptyDir: {} },
  ]
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'step', labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { terminationGracePeriodSeconds: 5, containers: [main], volumes },
      },
    },
  }
}

function conditionOf(object: PlainObject | undefined, type: string): string | undefined {
  const conditions: readonly PlainObject[] = object?.['status']?.conditions ?? []
  return conditions.find((condition) => condition['type'] === type)?.['status']
}

function restartsOf(pod: PlainObject | undefined): number | undefined {
  return pod?.['status']?.containerStatuses?.[0]?.restartCount
}

async function onlyPod({ api }: Rig): Promise<PlainObject> {
  return await until('the only pod is ready', async () => {
    const pods = await api.plain.list(PODS)
    const [pod] = pods
    return pods.length === 1 && conditionOf(pod, 'Ready') === 'True' ? pod : undefined
  })
}

async function infer(t: Test, pod: PlainObject): Promise<void> {
  const client = new InferenceClient({ address: `${pod['status'].podIP}:8001` })
  const inputs = [row('x')]
  try {
    const { outputs } = await client.infer({ modelName: 'identity_fp32', inputs })
    t.ok(Buffer.from(outputs[0]?.data ?? []).equals(inputs[0]?.data ?? Buffer.of()))
  } finally {
    client.close()
  }
}

await t.test('pods of a Deployment are processes', { skip: SKIP }, async (t) => {
  const rig = await openRig(t)
  const { api, kubelet, natsUrl } = rig
  await api.plain.create(DEPLOYMENTS, deployment(natsUrl))

  await t.test('a step becomes ready and answers at its own address', async (t) => {
    const pod = await onlyPod(rig)
    t.match(pod, {
      spec: { nodeName: 'process-0' },
      status: { phase: 'Running', podIP: /^127\.98\./, containerStatuses: [{ restartCount: 0 }] },
    })
    await infer(t, pod)
    await api.plain.until(`${DEPLOYMENTS}/step`, (found) => found?.['status']?.readyReplicas === 1)
  })

  await t.test('one that crashes is started again, at the same address', async (t) => {
    const before = await onlyPod(rig)
    process.kill(kubelet.pidOf(before) ?? 0, 'SIGKILL')
    const path = `${PODS}/${before['metadata'].name}`
    const after = await api.plain.until(path, (pod) => {
      return restartsOf(pod) === 1 && conditionOf(pod, 'Ready') === 'True'
    })
    t.match(after?.['status'].containerStatuses[0], {
      lastState: { terminated: { exitCode: 137, reason: 'Error' } },
      state: { running: {} },
    })
    t.equal(after?.['status'].podIP, before['status'].podIP)
    await infer(t, before)
  })

  await t.test('one that hangs is killed by its liveness probe', async () => {
    const before = await onlyPod(rig)
    // Nothing is answered any more, and SIGTERM is not heard: SIGKILL ends it after the grace.
    process.kill(kubelet.pidOf(before) ?? 0, 'SIGSTOP')
    const path = `${PODS}/${before['metadata'].name}`
    await api.plain.until(path, (pod) => conditionOf(pod, 'Ready') === 'False')
    await api.plain.until(
      path,
      (pod) => restartsOf(pod) === 2 && conditionOf(pod, 'Ready') === 'True',
      240_000,
    )
  })

  await t.test('deletion ends it in order', async (t) => {
    const pod = await onlyPod(rig)
    await api.plain.delete(`${DEPLOYMENTS}/step`, { propagationPolicy: 'Foreground' })
    await api.plain.until(`${PODS}/${pod['metadata'].name}`, (found) => found === undefined)
    const messages = kubelet.linesOf('default', 'step-').join('\n')
    t.match(messages, /"message":"drained"/)
    t.equal(kubelet.pidOf(pod), undefined)
    await api.plain.until(`${DEPLOYMENTS}/step`, (found) => found === undefined)
  })

  await t.test('an image that is not there is said so', async () => {
    await api.plain.create(DEPLOYMENTS, deployment(natsUrl, { more: { image: 'x:1' } }))
    await until('it waits for its image', async () => {
      const [pod] = await api.plain.list(PODS)
      const [main] = pod?.['status']?.containerStatuses ?? []
      return main?.state?.waiting?.reason === 'ImagePullBackOff'
    })
    await api.plain.delete(`${DEPLOYMENTS}/step`, { propagationPolicy: 'Foreground' })
    await until('no pod is left', async () => (await api.plain.list(PODS)).length === 0)
  })
})
