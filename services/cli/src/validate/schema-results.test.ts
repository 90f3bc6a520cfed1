// needs: apiserver
import { glob, readdir, readFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { availableParallelism } from 'node:os'
import { parseManifest, toProblemText } from '@tutti/ensemble'
import { ensembleManifest, modelManifest } from '@tutti/ensemble/testing'
import { type ApiServer, startApiServer, withoutKube } from '@tutti/kube/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { renderManifest } from '../import/render-manifest.ts'
import { parseManifests } from '../manifests/parse-manifests.ts'

/*
 * The same schema result from zod, from a real API server, and from `tutti validate`, on manifests that are changed in
 * one place, mostly.
 */

const CRDS = new URL('../../../../crds/', import.meta.url)
const EXAMPLES = new URL('../../../../examples/', import.meta.url)
const MANIFESTS = 2000
const AT_ONCE = 8 * availableParallelism()

type Manifest = Record<string, unknown>

const tensor = { name: 'feature_fusion/Conv_7/Sigmoid:0', datatype: 'FP32', shape: [-1, 3] }

/** Every field once, and each provider. */
const WHOLE: readonly Manifest[] = [
  modelManifest('whole', {
    modelName: 'ens_face_restoration_v2.1',
    storageUri: 's3://bucket/models/m',
    storage: { secretRef: { name: 's3' }, digest: `sha256:${'0f'.repeat(32)}` },
    maxBatchSize: 8,
    versionPolicy: { specific: { versions: [1, 3] } },
    modelFormat: { name: 'python' },
    instances: { count: 2, kind: 'KIND_GPU', sharedInterpreter: true },
    inputs: [tensor, { ...tensor, name: 'b', optional: true }],
    outputs: [tensor],
    batching: { preferredBatchSizes: [4, 8], maxQueueDelay: '100us', maxQueueLength: 16 },
    warmup: [
      { name: 'w', batchSize: 1, count: 2, inputs: [{ ...tensor, data: 'File', file: 'f.bin' }] },
    ],
    resources: {
      requests: { cpu: 0.5, memory: '1Gi' },
      limits: { cpu: 2, memory: 4_294_967_296, 'hugepages-2Mi': '1.5Gi' },
    },
    accelerator: {
      resourceName: 'nvidia.com/mig-1g.10gb',
      count: 1,
      runtimeClassName: 'nvidia',
      nodeSelector: { 'gpu.example.com/class': 'a' },
      tolerations: [
        {
          key: 'nvidia.com/gpu',
          operator: 'Equal',
          value: 'a',
          effect: 'NoExecute',
          tolerationSeconds: 3,
        },
      ],
    },
    scaling: {
      provider: 'Native',
      minReplicas: 1,
      maxReplicas: 4,
      target: 8,
      behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
    },
    rollout: { maxSurge: 0, maxUnavailable: '25%' },
    disruptionBudget: { maxUnavailable: 1 },
    podTemplate: {
      metadata: { labels: { team: 'a' }, annotations: { 'example.com/a': 'b c' } },
      spec: { priorityClassName: 'high', containers: [{ name: 'main', env: [] }] },
    },
    timeouts: { load: '10m', drain: '1m30s' },
    paused: false,
  }),
  modelManifest('scaled', {
    versionPolicy: { latest: { numVersions: 2 } },
    scaling: {
      provider: 'HPA',
      metrics: [
        {
          type: 'Resource',
          resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } },
        },
        {
          type: 'Pods',
          pods: {
            metric: {
              name: 'queue',
              selector: {
                matchLabels: { a: 'b' },
                matchExpressions: [{ key: 'c', operator: 'In', values: ['d'] }],
              },
            },
            target: { type: 'AverageValue', averageValue: '3' },
          },
        },
        {
          type: 'Object',
          object: {
            describedObject: { kind: 'Service', name: 's' },
            metric: { name: 'm' },
            target: { type: 'Value', value: 10 },
          },
        },
      ],
      behavior: {
        scaleDown: { tolerance: 0.05 },
        scaleUp: { selectPolicy: 'Max', policies: [{ type: 'Pods', value: 1, periodSeconds: 30 }] },
      },
    },
  }),
  {
    ...modelManifest('labelled'),
    metadata: {
      name: 'labelled',
      labels: { 'example.com/part-of': 'a.b_c', team: 'x' },
      annotations: { 'Example.com/note': 'anything at all: \u{1F600}' },
    },
  },
  modelManifest('devices', {
    resources: { requests: { 'nvidia.com/gpu': 1 }, limits: { 'nvidia.com/gpu': 1 } },
    accelerator: { resourceName: 'nvidia.com/gpu.shared', count: 1 },
  }),
  modelManifest('left', { versionPolicy: { all: {} }, scaling: { provider: 'None', replicas: 3 } }),
  ensembleManifest('whole', {
    modelName: 'E_1',
    maxBatchSize: 4,
    inputs: [{ ...tensor, name: 'x', optional: true }],
    outputs: [
      { name: 'y', from: 'a.y' },
      { name: 'z', from: 'b.o', datatype: 'BYTES', shape: [1] },
    ],
    steps: [
      {
        name: 'a',
        modelRef: { name: 'm', version: 3 },
        inputMap: { 'i:0': 'x' },
        outputMap: { o: 'middle' },
        hedge: { after: '50ms', maxPercent: 5 },
      },
      { name: 'b', ensembleRef: { name: 'f' }, inputs: ['a', 'a.o'], dependsOn: ['a'] },
    ],
    timeout: '1m30s',
    maxInFlightRequests: 8,
    expose: {
      ingress: {
        className: 'nginx',
        hosts: ['a.example.com', '*.example.com'],
        tls: [{ secretName: 's', hosts: ['a.example.com'] }],
        annotations: { 'example.com/a': 'b' },
      },
      auth: { secretRef: { name: 'token' } },
    },
    paused: true,
  }),
  ensembleManifest('edge', {
    expose: {
      gateway: { parentRef: { name: 'g', namespace: 'n', sectionName: 's' }, hosts: ['a'] },
    },
  }),
]

/** What a value may become. The texts are such as only some fields take. */
const VALUES: readonly unknown[] = [
  null,
  true,
  0,
  1,
  -1,
  7,
  1.5,
  2_147_483_648,
  '',
  'a',
  'A',
  'a.b',
  'a b',
  'ä',
  '\u{1F600}',
  '-',
  'x'.repeat(300),
  '1',
  '0',
  '0%',
  '25%',
  '100%',
  '101%',
  '10ms',
  '0s',
  '1h1h',
  '1d',
  '100us',
  '5Gi',
  '1e3',
  '1.5',
  '.5',
  'None',
  'HPA',
  'Native',
  'Pods',
  'FP32',
  'BYTES',
  'KIND_CPU',
  'File',
  'pvc://a/b',
  'pvc://A',
  's3://a',
  's3://ab',
  'https://me:hidden@host/m.tar',
  'http://h/x.tar',
  'https:///x',
  'hostPath:///a/../b',
  'hostPath:///a',
  'x',
  'nvidia.com/gpu',
  'example.com/a b',
  [],
  ['a'],
  ['a', 'a'],
  [0],
  [1, 1],
  [-1],
  {},
  { a: 'b' },
  { 'a/b/c': 'd' },
  { 'tutti.dev/a': 'b' },
  { a: 1 },
  { name: 'a' },
]

const someValue = fc.constantFrom(...VALUES)
const change = fc.record({
  where: fc.nat(),
  kind: fc.constantFrom('set', 'set', 'set', 'set', 'delete', 'add', 'repeat', 'empty'),
  key: fc.constantFrom(
    'unknown',
    'replicas',
    'name',
    'a/b',
    'minReplicas',
    'target',
    'metrics',
    'inputMap',
    'file',
  ),
  value: someValue,
})
const someManifest = fc
  .tuple(fc.constantFrom(...WHOLE), fc.array(change, { minLength: 1, maxLength: 2 }))
  .map(([manifest, changes]) => changes.reduce(apply, structuredClone(manifest)))

interface Place {
  readonly parent: Manifest | unknown[]
  readonly key: string | number
}

/** Every place within `spec` and `metadata`. */
function placesIn(manifest: Manifest): Place[] {
  const places: Place[] = []
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) {
      for (const [key, child] of node.entries()) {
        places.push({ parent: node, key })
        walk(child)
      }
    } else if (isRecord(node)) {
      for (const [key, child] of Object.entries(node)) {
        places.push({ parent: node, key })
        walk(child)
      }
    }
  }
  walk(manifest['spec'])
  walk(manifest['metadata'])
  return places
}

function isRecord(value: unknown): value is Manifest {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function apply(
  manifest: Manifest,
  o: { where: number; kind: string; key: string; value: unknown },
): Manifest {
  const places = placesIn(manifest)
  const place = places[o.where % places.length]
  if (place === undefined) return manifest
  const { parent } = place
  const value = structuredClone(o.value)
  if (Array.isArray(parent)) {
    const at = Number(place.key)
    if (o.kind === 'delete') parent.splice(at, 1)
    else if (o.kind === 'repeat' || o.kind === 'add') parent.push(structuredClone(parent[at]))
    else if (o.kind === 'empty') parent.length = 0
    else parent[at] = value
  } else if (o.kind === 'delete') delete parent[place.key]
  else if (o.kind === 'add' || o.kind === 'repeat') parent[o.key] = value
  else if (o.kind === 'empty') for (const key of Object.keys(parent)) delete parent[key]
  else parent[place.key] = value
  return manifest
}

interface Results {
  readonly manifest: Manifest
  readonly zod: string
  readonly cli: string
  readonly server: string
}

/** What the API server lets in, because its rules do not see it: the operator says it by the condition Accepted. */
const TOLD =
  /^spec\.(resources\.(requests|limits): got the key|resources: got devices|scaling\.behavior: got it with the provider|podTemplate\.spec: got null)/

function zodResult(manifest: Manifest): string {
  const kind = manifest['kind'] === 'Model' ? 'Model' : 'Ensemble'
  const parsed = parseManifest(kind, manifest)
  return parsed.success ? '' : toProblemText(parsed.problems)
}

/** True for a manifest that breaks rules of zod's alone. */
function isTold({ zod }: Pick<Results, 'zod'>): boolean {
  return (
    zod !== '' && zod.split('; spec.').every((one, i) => TOLD.test(i > 0 ? `spec.${one}` : one))
  )
}

function cliResult(manifest: Manifest): string {
  const { problems, manifests } = parseManifests([{ name: 'f', text: renderManifest(manifest) }])
  const texts = problems.map(({ path, message }) => `${path}: ${message}`)
  return problems.length === 0 && manifests.length !== 1 ? 'nothing was found' : texts.join('\n')
}

/** What only a change shows: names stay. */
async function checkChanges(t: Test, { plain }: ApiServer): Promise<void> {
  const models = '/apis/tutti.dev/v1alpha1/namespaces/default/models'
  await plain.create(models, modelManifest('kept'))
  const patch = (spec: Manifest) => plain.send('PATCH', `${models}/kept`, { body: { spec } })
  t.match(await patch({ modelName: 'other' }), {
    status: 422,
    body: { message: /modelName cannot be changed: delete the resource and make another/ },
  })
  t.match(
    await patch({ modelName: 'kept', paused: true }),
    { status: 200 },
    'the same in other words',
  )
  await plain.delete(`${models}/kept`)
}

const SKIP = { skip: withoutKube() }

await t.test('zod, the API server and tutti validate agree on every manifest', SKIP, async (t) => {
  const server = await startApiServer()
  t.teardown(() => server.stop())
  for (const file of await readdir(CRDS)) {
    const crd = parse(await readFile(new URL(file, CRDS), 'utf8'))
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd.metadata.name}`
    await server.plain.apply(path, crd)
    await server.plain.until(path, (object) => {
      const conditions: { type: string; status: string }[] = object?.['status']?.conditions ?? []
      return conditions.some(({ type, status }) => type === 'Established' && status === 'True')
    })
  }
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE, ca: server.ca })
  t.teardown(() => agent.destroy())

  const ask = (manifest: Manifest): Promise<string> =>
    new Promise((resolve, reject) => {
      const plural = manifest['kind'] === 'Model' ? 'models' : 'ensembles'
      const path = `/apis/tutti.dev/v1alpha1/namespaces/default/${plural}?dryRun=All&fieldValidation=Strict`
      const sent = request(new URL(path, server.url), {
        method: 'POST',
        agent,
        headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      })
      sent.on('error', reject)
      sent.on('response', (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (piece: string) => (text += piece))
        response.on('end', () => {
          const { statusCode = 0 } = response
          if (statusCode === 201) resolve('')
          else if (statusCode === 422 || statusCode === 400) resolve(JSON.parse(text).message)
          else reject(new Error(`${statusCode}: ${text}`))
        })
      })
      sent.end(JSON.stringify(manifest))
    })

  // Established is not yet served.
  const [probe] = WHOLE
  while ((await ask(probe ?? {}).catch(() => 'not yet')) === 'not yet') {
    await new Promise((resolve) => setImmediate(resolve))
  }
  for (const manifest of WHOLE) {
    t.equal(await ask(manifest), '', 'the server accepts it')
    t.equal(zodResult(manifest), '')
  }

  for await (const file of glob('*/manifest.yaml', { cwd: EXAMPLES })) {
    const text = await readFile(new URL(file, EXAMPLES), 'utf8')
    for (const manifest of parseAllDocuments(text).map((one): Manifest => one.toJS())) {
      if (manifest['kind'] !== 'Router') t.equal(await ask(manifest), '', file)
    }
  }

  await checkChanges(t, server)

  const manifests = fc.sample(someManifest, MANIFESTS)
  const results: Results[] = []
  const queue = manifests.values()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const manifest of queue) {
        const result = { manifest, zod: zodResult(manifest), cli: cliResult(manifest) }
        results.push({ ...result, server: await ask(manifest) })
      }
    }),
  )
  const different = results.filter((result) => {
    const wanted = isTold(result) ? 'told' : result.server
    return (result.zod === '') !== (wanted === '') || (result.cli === '') !== (wanted === '')
  })
  t.same(different.slice(0, 5), [], `${different.length} of ${results.length} differ`)
  const accepted = results.filter(({ server }) => server === '').length
  t.ok(accepted > MANIFESTS / 20, `${accepted} accepted`)
  t.ok(accepted < MANIFESTS - MANIFESTS / 20, `${MANIFESTS - accepted} refused`)
})
