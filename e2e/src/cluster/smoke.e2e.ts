import { readFile } from 'node:fs/promises'
import { createTestCertificates } from '@tutti/chassis/testing'
import type { PlainObject } from '@tutti/kube/testing'
import t from 'tap'
import { restCall } from '../rest-call.ts'
import { tempFolder } from '../temp-repository.ts'
import { until } from '../until.ts'
import {
  apply,
  createNamespace,
  getObject,
  INGRESS,
  kubectl,
  NODE_ADDRESS,
  withoutOwnNode,
} from './kubectl.ts'
import { openGrpc, plainGrpc } from './plain-grpc.ts'
import { askProbe, probeObjects, probePods } from './probe.ts'

t.setTimeout(600_000)

const SPACE = 'smoke'
const inSpace = `--namespace=${SPACE}`
const skip = withoutOwnNode()

const rolledOut = (name: string): Promise<string> =>
  kubectl('rollout', 'status', inSpace, `deployment/${name}`, '--timeout=120s')

const wanting = (count: number, resource = 'nvidia.com/gpu') => ({
  container: { resources: { limits: { [resource]: count } } },
})

const backend = (path: string, name: string, port: string) => ({
  path,
  pathType: 'Prefix',
  backend: { service: { name, port: { name: port } } },
})

async function start(name: string, o?: Parameters<typeof probeObjects>[2]): Promise<PlainObject[]> {
  await apply(...probeObjects(SPACE, name, o))
  await rolledOut(name)
  return await probePods(SPACE, name)
}

await t.test('the cluster itself', { skip }, async (t) => {
  await createNamespace(t, SPACE)
  const [first, second] = await start('probe', { replicas: 2 })
  if (first === undefined || second === undefined) throw new Error('there are no two pods')

  await t.test('pods are Ready by gRPC probes, under Pod Security restricted', async (t) => {
    t.not(await askProbe(first, 'hostname'), await askProbe(second, 'hostname'))
  })

  await t.test('no packet leaves the machine', async (t) => {
    await t.rejects(askProbe(first, 'dial', '198.51.100.1:80'), {
      message: /no route to host|network is unreachable/,
    })
    await t.rejects(askProbe(first, 'lookup', 'example.com'))
  })

  await t.test('a Service has a name, and leads to every pod', async (t) => {
    const address = (await getObject('service', 'probe', inSpace))['spec'].clusterIP
    t.equal(await askProbe(first, 'lookup', `probe.${SPACE}.svc.cluster.local`), address)
    const seen = new Set<string>()
    await until('both pods were asked', async () => {
      seen.add(await askProbe(first, 'get', `http://probe.${SPACE}/hostname`))
      return seen.size === 2
    })
    for (const { metadata } of [first, second]) t.ok(seen.has(metadata.name))
    t.ok(seen.has(await askProbe(address, 'hostname')), 'from outside too')
  })

  await t.test('a volume outlives its pod', async (t) => {
    await apply({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: SPACE, name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
    })
    const [writer] = await start('writer', {
      container: { volumeMounts: [{ name: 'data', mountPath: '/data' }] },
      pod: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] },
    })
    const { name } = writer?.['metadata'] ?? {}
    t.equal(await askProbe(writer ?? '', 'append', '/data/names'), name)
    await kubectl('delete', 'pod', name, inSpace)
    await rolledOut('writer')
    const [next] = (await probePods(SPACE, 'writer')).filter(({ metadata }) => {
      return metadata.deletionTimestamp === undefined
    })
    t.equal(
      await askProbe(next ?? '', 'append', '/data/names'),
      `${name}\n${next?.['metadata'].name}`,
    )
  })

  await t.test('devices: each pod gets its own, and one too many is Unschedulable', async (t) => {
    const gpus = await Promise.all(
      ['gpu-a', 'gpu-b'].map(async (name) => {
        const [pod] = await start(name, wanting(1))
        return await askProbe(pod ?? '', 'environment', 'NVIDIA_VISIBLE_DEVICES')
      }),
    )
    t.same(gpus.toSorted(), ['GPU-fake-0', 'GPU-fake-1'])
    await apply(...probeObjects(SPACE, 'gpu-c', wanting(1)))
    await until('the third is refused', async () => {
      const [pod] = await probePods(SPACE, 'gpu-c')
      const conditions: readonly PlainObject[] = pod?.['status'].conditions ?? []
      return conditions.some(({ reason, message }) => {
        return reason === 'Unschedulable' && /Insufficient nvidia.com\/gpu/.test(message)
      })
    })
    for (const [name, resource] of [
      ['mig', 'nvidia.com/mig-1g.5gb'],
      ['shared', 'nvidia.com/gpu.shared'],
    ] as const) {
      const [pod] = await start(name, wanting(1, resource))
      t.match(await askProbe(pod ?? '', 'environment', 'NVIDIA_VISIBLE_DEVICES'), /^GPU-fake-\d$/)
    }
  })

  await t.test('Ingress: gRPC and REST on one host, plain and with TLS', async (t) => {
    const host = 'probe.test'
    const folder = await tempFolder(t)
    const certificates = await createTestCertificates(folder, [`DNS:${host}`])
    const { caFile, certFile, keyFile } = certificates
    await kubectl(
      'create',
      'secret',
      'tls',
      'edge',
      inSpace,
      `--cert=${certFile}`,
      `--key=${keyFile}`,
    )
    const paths = [
      backend('/grpc.health.v1.Health/', 'probe-grpc', 'grpc'),
      backend('/grpc.reflection.v1.ServerReflection/', 'probe-grpc', 'grpc'),
      backend('/', 'probe', 'http'),
    ]
    await apply({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { namespace: SPACE, name: 'probe' },
      spec: { rules: [{ host, http: { paths } }], tls: [{ hosts: [host], secretName: 'edge' }] },
    })
    const authority = await readFile(caFile)
    for (const [port, ca] of [
      [INGRESS.http, undefined],
      [INGRESS.https, authority],
    ] as const) {
      const grpc = plainGrpc(openGrpc(t, `${NODE_ADDRESS}:${port}`, { host, ca }))
      const serving = await until('the ingress controller leads there', () => {
        return grpc.check().catch(() => undefined)
      })
      t.same([...serving], [0x08, 1], `${port}: SERVING`)
      const answers = await grpc.converse(20)
      t.equal(answers.length, 20)
      t.ok(answers.every((answer) => answer.includes('grpc.health.v1.Health')))
      const where = { address: NODE_ADDRESS, ca, headers: { host } }
      const { body } = await restCall(port, 'GET', '/hostname', where)
      const name = body.toString().trim()
      t.ok(
        [first, second].some(({ metadata }) => metadata.name === name),
        `${port}: REST`,
      )
    }
  })

  await t.test('an HPA sees what pods use, and adds pods', async (t) => {
    const [busy] = await start('busy', {
      container: { resources: { requests: { cpu: '50m' } } },
    })
    await apply({
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { namespace: SPACE, name: 'busy' },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'busy' },
        minReplicas: 1,
        maxReplicas: 2,
        metrics: [
          {
            type: 'Resource',
            resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } },
          },
        ],
      },
    })
    // It ends when its pod does, long before.
    const burnt = askProbe(busy ?? '', 'burn', '1h').catch(() => '')
    const seen = await until('there are two', async () => {
      const { status } = await getObject('hpa', 'busy', inSpace)
      return status?.currentReplicas === 2 && status
    })
    t.ok(seen.currentMetrics[0].resource.current.averageUtilization > 50)
    await kubectl('delete', 'deployment', 'busy', inSpace)
    await burnt
  })
})
