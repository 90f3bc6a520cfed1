import t from 'tap'
import { z } from 'zod'
import { EnsembleManifest, ModelManifest, modelNameOf, RouterManifest } from './manifests.ts'
import { compareClaims } from './names/served-names.ts'
import { findRouterProblems, parseManifest } from './parse-manifest.ts'
import { toBytes, toMilliseconds } from './schema/fields.ts'
import { ensembleManifest, modelManifest } from './testing/manifests.ts'

type Spec = Readonly<Record<string, unknown>>

function problemOf(schema: z.ZodType, manifest: unknown): string {
  const { error } = schema.safeParse(manifest)
  const [issue] = error?.issues ?? []
  return issue === undefined ? 'accepted' : `${z.core.toDotPath(issue.path)}: ${issue.message}`
}

const model = (spec: Spec) => problemOf(ModelManifest, modelManifest('m', spec))
const ensemble = (spec: Spec) => problemOf(EnsembleManifest, ensembleManifest('e', spec))
const tensor = { name: 't', datatype: 'FP32', shape: [-1, 3] }

const claims = [{ name: 'gpu', resourceClaimTemplateName: 'one-gpu' }]

await t.test('a Model may say all this', async (t) => {
  const everything = {
    modelName: 'ens_face_restoration_v2.1',
    modelFormat: { name: 'python' },
    storageUri: 's3://bucket/models/m',
    storage: { secretRef: { name: 's3' }, digest: `sha256:${'0f'.repeat(32)}` },
    maxBatchSize: 8,
    versionPolicy: { specific: { versions: [1, 3] } },
    instances: { count: 2, kind: 'KIND_GPU', sharedInterpreter: true },
    inputs: [{ ...tensor, name: 'feature_fusion/Conv_7/Sigmoid:0', optional: true }],
    outputs: [{ ...tensor, name: 'input_images:0' }],
    batching: { preferredBatchSizes: [4, 8], maxQueueDelay: '100us', maxQueueLength: 16 },
    warmup: [{ name: 'zero', inputs: [{ ...tensor, data: 'Zero' }] }],
    resources: { requests: { cpu: '500m', memory: '1Gi' }, limits: { cpu: 2 } },
    accelerator: {
      resourceName: 'nvidia.com/mig-1g.10gb',
      count: 1,
      runtimeClassName: 'nvidia',
      nodeSelector: { 'gpu.example.com/class': 'a' },
      tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists', effect: 'NoSchedule' }],
    },
    scaling: {
      provider: 'HPA',
      minReplicas: 1,
      maxReplicas: 4,
      metrics: [
        {
          type: 'Resource',
          resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } },
        },
      ],
      behavior: { scaleDown: { stabilizationWindowSeconds: 60, selectPolicy: 'Min' } },
    },
    rollout: { maxSurge: 0, maxUnavailable: '25%', whenFull: 'Replace' },
    disruptionBudget: { maxUnavailable: 1 },
    podTemplate: { metadata: { labels: { team: 'a' } }, spec: { priorityClassName: 'high' } },
    timeouts: { load: '10m', drain: '1m30s' },
    paused: false,
  }
  t.equal(model(everything), 'accepted')
  t.equal(model({}), 'accepted')
  const limits = { 'nvidia.com/gpumem': 3000 }
  t.equal(model({ resources: { limits }, accelerator: { count: 1 } }), 'accepted')
  t.equal(model({ accelerator: { claims, runtimeClassName: 'nvidia' } }), 'accepted')
})

await t.test(
  'what a Model may not say is refused with what was got and what is wanted',
  async (t) => {
    // 32 times three bytes of a key and two of each of 4080 characters: 261216.
    const tooMany = Object.fromEntries(
      Array.from({ length: 32 }, (_, at) => [`k${10 + at}`, 'é'.repeat(4080)]),
    )
    const cases: [Spec, RegExp][] = [
      [{ modelName: '.hidden' }, /^spec\.modelName: /],
      [{ modelFormat: { name: 'tensorrt' } }, /^spec\.modelFormat\.name: .*onnx/],
      [{ storageUri: 'ftp://x/y' }, /^spec\.storageUri: got 'ftp:\/\/x\/y', want pvc:\/\/CLAIM/],
      [
        { storageUri: 'hf://x' },
        /^spec\.storageUri: got 'hf:\/\/x', want .*hf:\/\/OWNER\/NAME@REVISION\/PATH/,
      ],
      [{ storageUri: 'oci://a/b' }, /^spec\.storageUri: got .*oci:\/\/HOST\/REPOSITORY:TAG\/PATH/],
      [{ storageUri: 'oci://a:1/x' }, /^spec\.storageUri: got/],
      [{ storageUri: 'hf://x/y/../z' }, /^spec\.storageUri: .*without '\.\.'/],
      [{ storageUri: 'pvc://x/../y' }, /^spec\.storageUri: .*without '\.\.'/],
      [{ storageUri: 'image://a/b/models' }, /^spec\.storageUri: got .*image:\/\/REPOSITORY:TAG/],
      [{ storageUri: 'image://a:1' }, /^spec\.storageUri: got .*image:\/\/REPOSITORY:TAG\/PATH/],
      [{ storageUri: 'image://a:1/.' }, /^spec\.storageUri: got/],
      [{ storageUri: 'image://a:1/x/../y' }, /^spec\.storageUri: .*without '\.\.'/],
      [{ storageUri: 'image://a:1/$(HOME)' }, /^spec\.storageUri: got/],
      [
        { storageUri: 'image://a.b:5000/c/d' },
        /^spec\.storageUri: .*want a tag or a digest behind/,
      ],
      [
        { storageUri: 'image://a:1/x', storage: { secretRef: { name: 'x' } } },
        /^spec\.storage\.secretRef: .*image:\/\/.*podTemplate\.spec\.imagePullSecrets/,
      ],
      [{ storageUri: 'hostPath://x' }, /^spec\.storageUri: got/],
      [{ storageUri: 'https://me:hidden@x/y.tar' }, /^spec\.storageUri: got a user in the address/],
      [
        { storage: { secretRef: { name: 'x' } } },
        /^spec\.storage\.secretRef: .*without credentials/,
      ],
      [{ storage: { digest: 'md5:0' } }, /^spec\.storage\.digest: /],
      [{ versionPolicy: {} }, /^spec\.versionPolicy: want one of latest, all and specific/],
      [{ versionPolicy: { all: {}, latest: { numVersions: 1 } } }, /want one of/],
      [{ inputs: [tensor, tensor] }, /^spec\.inputs: got 't' twice, want each name once/],
      [{ inputs: [{ ...tensor, shape: [0] }] }, /^spec\.inputs\[0\]\.shape: .*at least 1/],
      [{ inputs: [{ ...tensor, datatype: 'TYPE_FP32' }] }, /^spec\.inputs\[0\]\.datatype: /],
      [
        { maxBatchSize: 0, batching: { maxQueueDelay: '5ms' } },
        /^spec\.batching: got maxBatchSize 0, which lets every request execute alone: want/,
      ],
      [
        { maxBatchSize: 0, batching: { preferredBatchSizes: [4] } },
        /^spec\.batching: got maxBatchSize 0/,
      ],
      [{ batching: { maxQueueDelay: '0ms' } }, /got '0ms', want 'auto', or a duration above 0/],
      [
        { timeouts: { load: '100us' } },
        /^spec\.timeouts\.load: got '100us', want a duration above 0, e\.g\. 500ms/,
      ],
      [{ warmup: [{ name: 'w', inputs: [{ ...tensor, data: 'File' }] }] }, /\.file: want `file`/],
      [{ resources: { limits: { 'a b': 1 } } }, /got the key 'a b', want \[PREFIX\/\]NAME/],
      [{ resources: { limits: { cpu: 'much' } } }, /^spec\.resources\.limits\.cpu: /],
      [
        { resources: { limits: { 'nvidia.com/gpu': 1 } } },
        /^spec\.resources: got devices of the pod here, want them in `accelerator` alone/,
      ],
      [
        {
          resources: { requests: { 'nvidia.com/gpu.shared': 1 } },
          accelerator: { resourceName: 'nvidia.com/gpu.shared' },
        },
        /^spec\.resources: got devices/,
      ],
      [{ accelerator: { resourceName: 'gpu' } }, /^spec\.accelerator\.resourceName: /],
      [{ accelerator: { claims, count: 1 } }, /^spec\.accelerator\.claims: got claims beside res/],
      [
        { accelerator: { claims, resourceName: 'nvidia.com/gpu' } },
        /claims: got claims beside res/,
      ],
      [{ accelerator: { claims: [] } }, /^spec\.accelerator\.claims: /],
      [
        { accelerator: { claims: [{ name: 'gpu' }] } },
        /claims\[0\]: got neither resourceClaimName nor resourceClaimTemplateName, want one/,
      ],
      [
        {
          accelerator: {
            claims: [{ ...claims[0], resourceClaimName: 'a' }],
          },
        },
        /claims\[0\]: got resourceClaimName and resourceClaimTemplateName, want one of them/,
      ],
      [
        { scaling: { minReplicas: 3, maxReplicas: 2 } },
        /got minReplicas 3, want at most maxReplicas 2/,
      ],
      [{ scaling: { provider: 'None', minReplicas: 1 } }, /takes `replicas` only/],
      [{ scaling: { replicas: 2 } }, /got it with the provider Native, which decides on replicas/],
      [{ scaling: { provider: 'HPA' } }, /^spec\.scaling\.metrics: got none, want metrics/],
      [{ scaling: { provider: 'HPA', target: 1 } }, /^spec\.scaling\.target: /],
      [{ scaling: { behavior: { scaleUp: { selectPolicy: 'Max' } } } }, /takes stabilization/],
      [
        { podTemplate: { metadata: { annotations: tooMany } } },
        /^spec\.podTemplate\.metadata\.annotations: got 261216 bytes in keys and values together, want at most 261120/,
      ],
      [{ rollout: { maxSurge: 0 } }, /^spec\.rollout\.maxUnavailable: with maxSurge 0/],
      [{ rollout: { maxSurge: '0%', maxUnavailable: '0%' } }, /^spec\.rollout\.maxUnavailable: /],
      [{ rollout: { maxSurge: '120%' } }, /^spec\.rollout\.maxSurge: /],
      [
        { disruptionBudget: {} },
        /(neither|got) .*minAvailable (nor|and) maxUnavailable, want one of them/,
      ],
      [
        { podTemplate: { metadata: { labels: { 'tutti.dev/model': 'x' } } } },
        /belong to the operator/,
      ],
      [{ replicas: 1 }, /^spec: Unrecognized key/],
    ]
    for (const [spec, problem] of cases) t.match(model(spec), problem, JSON.stringify(spec))
  },
)

const router = (spec: Spec, name = 'default') => ({
  apiVersion: 'tutti.dev/v1alpha1',
  kind: 'Router',
  metadata: { name },
  spec,
})

await t.test('a Router may say all this, and no more', async (t) => {
  const metrics = [{ type: 'Pods', pods: { metric: { name: 'q' }, target: { type: 'Value' } } }]
  const behavior = { scaleDown: { selectPolicy: 'Min', policies: [] } }
  const everything = {
    scaling: { provider: 'HPA', minReplicas: 2, maxReplicas: 100, metrics, behavior },
    image: 'registry.example/router:1',
    resources: { requests: { cpu: '500m' }, limits: { memory: '4Gi' } },
    nodeSelector: { disk: 'fast' },
    podTemplate: { metadata: { labels: { team: 'a' } }, spec: { priorityClassName: 'high' } },
    tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }],
    maxInFlightRequests: 7,
    maxInFlightBytes: '8Gi',
    timeouts: { drain: '1m30s' },
    logVerbose: 1,
    clientNamespaces: ['apps', 'web'],
  }
  const scalings = [
    {},
    { replicas: 100 },
    { provider: 'None', replicas: 1 },
    { provider: 'HPA' },
    { minReplicas: 3 },
  ]
  const specs = scalings.map((scaling) => ({ scaling }))
  for (const spec of [{}, everything, { clientNamespaces: ['*'] }, ...specs]) {
    t.equal(problemOf(RouterManifest, router(spec)), 'accepted')
  }
  t.same(findRouterProblems(router({ image: null })), [], 'null is as good as nothing')
  t.match(findRouterProblems(router({ logVerbose: 'x' })), [{ path: ['spec', 'logVerbose'] }])
  t.match(
    problemOf(RouterManifest, router({}, 'other')),
    /^metadata\.name: got other, want default/,
  )
  const cases: [Spec, RegExp][] = [
    [{ maxInFlightBytes: 0 }, /^spec\.maxInFlightBytes: /],
    [{ maxInFlightBytes: '0Gi' }, /^spec\.maxInFlightBytes: got 0Gi, want 1 to 9007199254740991 /],
    [{ maxInFlightBytes: '2GB' }, /^spec\.maxInFlightBytes: got '2GB', want a quantity, e\.g\./],
    [{ maxInFlightBytes: '16Ei' }, /^spec\.maxInFlightBytes: got 16Ei, want 1 to /],
    [{ replicas: 3 }, /^spec: Unrecognized key/],
    [{ scaling: { replicas: 0 } }, /^spec\.scaling\.replicas: got 0, want at least 1: without/],
    [{ scaling: { minReplicas: 0 } }, /^spec\.scaling\.minReplicas: got 0, want at least 1: /],
    [{ scaling: { maxReplicas: 101 } }, /^spec\.scaling\.maxReplicas: /],
    [{ scaling: { minReplicas: 3, maxReplicas: 2 } }, /got minReplicas 3, want at most/],
    [{ scaling: { provider: 'Native' } }, /^spec\.scaling\.provider: got Native, want HPA or None/],
    [{ scaling: { provider: 'None', behavior } }, /^spec\.scaling\.provider: .* `replicas` only/],
    [{ scaling: { target: 1 } }, /^spec\.scaling\.target: want no target: .* want metrics/],
    [{ scaling: { replicas: 2, minReplicas: 2 } }, /^spec\.scaling\.replicas: got it with the pro/],
    [
      { scaling: { replicas: 2, metrics } },
      /^spec\.scaling\.replicas: .* decides on replicas itself/,
    ],
    [{ image: 'a b' }, /^spec\.image: got 'a b', want an image reference/],
    [{ timeouts: { drain: '999ms' } }, /^spec\.timeouts\.drain: got 999ms, want 1s to 24h/],
    [{ timeouts: { drain: '25h' } }, /^spec\.timeouts\.drain: got 25h, want 1s to 24h/],
    [{ timeouts: { drain: 'soon' } }, /^spec\.timeouts\.drain: got 'soon', want a duration/],
    [{ clientNamespaces: ['a', 'a'] }, /got 'a' twice/],
    [{ clientNamespaces: ['a', '*'] }, /^spec\.clientNamespaces: want \* alone/],
    [{ clientNamespaces: ['A'] }, /want the name of a namespace, or \*/],
    [{ affinity: {} }, /^spec: Unrecognized key/],
  ]
  for (const [spec, problem] of cases) {
    t.match(problemOf(RouterManifest, router(spec)), problem, JSON.stringify(spec))
  }
})

await t.test('what an Ensemble may not say is refused', async (t) => {
  const step = { name: 'a', modelRef: { name: 'm' }, inputMap: { x: 'x' } }
  const ingress = { hosts: ['a.example.com'] }
  const cases: [Spec, RegExp][] = [
    [{ steps: [] }, /^spec\.steps: /],
    [{ steps: [step, step] }, /^spec\.steps: got 'a' twice/],
    [{ steps: [{ ...step, name: 'a.b' }] }, /^spec\.steps\[0\]\.name: /],
    [{ steps: [{ ...step, ensembleRef: { name: 'e' } }] }, /got modelRef and ensembleRef/],
    [
      { steps: [{ name: 'a', inputMap: { x: 'x' } }] },
      /got none of modelRef, ensembleRef and builtin, want one of them/,
    ],
    [
      { steps: [{ name: 'a', modelRef: { name: 'm' } }] },
      /want inputMap, inputs, firstOf or forEach/,
    ],
    [{ outputs: [{ name: 'y', from: 'a.y', datatype: 'FP32' }] }, /want datatype and shape/],
    [{ timeout: '1d' }, /^spec\.timeout: /],
    [{ steps: [{ ...step, timeout: '0s' }] }, /^spec\.steps\[0\]\.timeout: got '0s'/],
    [{ steps: [{ ...step, retry: {} }] }, /^spec\.steps\[0\]\.retry\.maxRetries: /],
    [{ steps: [{ ...step, retry: { maxRetries: 11 } }] }, /retry\.maxRetries: /],
    [
      { steps: [{ ...step, retry: { maxRetries: 1, retryOn: ['CANCELLED'] } }] },
      /retry\.retryOn\[0\]: /,
    ],
    [{ steps: [{ ...step, retry: { maxRetries: 1, retryOn: [] } }] }, /retry\.retryOn: /],
    [
      { steps: [{ ...step, onError: {} }] },
      /^spec\.steps\[0\]\.onError: got neither fallback nor default/,
    ],
    [
      { steps: [{ ...step, onError: { default: { o: { datatype: 'FP32', value: ['a'] } } } }] },
      /onError\.default\.o: /,
    ],
    [
      { steps: [{ ...step, onError: { fallback: {} } }] },
      /onError\.fallback: got neither modelRef nor ensembleRef/,
    ],
    [{ steps: [{ ...step, hedge: {} }] }, /^spec\.steps\[0\]\.hedge\.after: /],
    [{ steps: [{ ...step, hedge: { after: '0s' } }] }, /got '0s', want a duration above 0/],
    [{ steps: [{ ...step, hedge: { after: '1s', maxPercent: 101 } }] }, /hedge\.maxPercent: /],
    [
      {
        steps: [
          { name: 'a', ensembleRef: { name: 'e' }, inputMap: { x: 'x' }, hedge: { after: '1s' } },
        ],
      },
      /^spec\.steps\[0\]\.hedge: got it for a step that runs no Model, want it with modelRef/,
    ],
    [{ maxInFlightRequests: 0 }, /^spec\.maxInFlightRequests: /],
    [{ expose: {} }, /got neither ingress nor gateway/],
    [
      { expose: { ingress, gateway: { parentRef: { name: 'g' }, hosts: ['a'] } } },
      /got ingress and/,
    ],
    [{ expose: { ingress: { hosts: ['A.example.com'] } } }, /hosts\[0\]: /],
    [{ expose: { ingress: { ...ingress, tls: [{ hosts: ['b.example.com'] }] } } }, /among `hosts`/],
  ]
  const words = () => cases.map(([spec]) => ensemble(spec))
  t.same(words(), words(), 'in the same words each time')
  for (const [spec, problem] of cases) t.match(ensemble(spec), problem, JSON.stringify(spec))
  t.equal(ensemble({ timeout: '1m30s', maxInFlightRequests: 8, expose: { ingress } }), 'accepted')
})

const named = (name: string) => problemOf(ModelManifest, modelManifest(name))

await t.test('children are named from metadata.name, so it is a short DNS label', async (t) => {
  t.equal(named('a'.repeat(52)), 'accepted')
  for (const name of ['a'.repeat(53), 'a.b', '1a', 'a_b', ''])
    t.match(named(name), /^metadata\.name: /)
})

const tensorNamed = (length: number) =>
  model({ inputs: [{ ...tensor, name: '\u{1F600}'.repeat(length) }] })

await t.test('text is counted in code points, as the API server does', async (t) => {
  t.equal(tensorNamed(256), 'accepted')
  t.match(tensorNamed(257), /got 257 characters, want at most 256/)
})

await t.test(
  'a null is as good as nothing, but for a pod spec, where kubectl apply would drop it',
  async (t) => {
    const spec = { inputs: [tensor, { ...tensor, name: 'b', optional: null }], maxBatchSize: null }
    const parsed = parseManifest('Model', modelManifest('m', spec))
    if (!parsed.success) throw new Error('it was refused')
    const { data } = parsed
    t.match(data.spec, { inputs: [tensor, { name: 'b' }] })
    t.notOk(Object.hasOwn(data.spec, 'maxBatchSize'))
    for (const wrong of [{ unknown: null }, { storageUri: null }, { inputs: [null] }]) {
      t.equal(parseManifest('Model', modelManifest('m', wrong)).success, false)
    }
    t.equal(parseManifest('Model', null).success, false)
    for (const [podSpec, path] of [
      [{ a: null }, 'a'],
      [{ securityContext: { fsGroup: null } }, 'securityContext.fsGroup'],
      [{ containers: [{ name: 'main' }, { env: [null] }] }, 'containers[1].env[0]'],
    ] as const) {
      const refused = parseManifest('Model', modelManifest('m', { podTemplate: { spec: podSpec } }))
      t.match(refused.problems, [
        {
          path: ['spec', 'podTemplate', 'spec'],
          message: `got null at ${path}, which kubectl apply drops; want $patch: delete or`,
        },
      ])
    }
  },
)

await t.test('quantities are numbers as YAML makes them, or text', async (t) => {
  const limits = { cpu: 0.5, memory: 4_294_967_296, 'hugepages-2Mi': '1.5Gi', storage: '1e3' }
  t.ok(parseManifest('Model', modelManifest('m', { resources: { limits } })).success)
  for (const cpu of [-1, true, '4 GB', '1m5', '', {}, ['1'], Number.POSITIVE_INFINITY]) {
    const refused = parseManifest('Model', modelManifest('m', { resources: { limits: { cpu } } }))
    t.match(refused.problems, [{ path: ['spec', 'resources', 'limits', 'cpu'] }])
  }
  const bytes = {
    '2Gi': 2 ** 31,
    '1.5Ki': 1536,
    '1M': 1e6,
    '1k': 1000,
    '500m': 1,
    '1500m': 2,
    '1e3': 1000,
    '2E2': 200,
    '7': 7,
    '1Ei': 2 ** 60,
    '3E': 3e18,
    '1 Gi': undefined,
  }
  for (const [text, wanted] of Object.entries(bytes)) t.equal(toBytes(text), wanted, text)
  t.equal(toBytes(1.5), 2)
})

await t.test('the served name is modelName, else metadata.name', async (t) => {
  t.equal(modelNameOf({ metadata: { name: 'a' }, spec: {} }), 'a')
  t.equal(modelNameOf({ metadata: { name: 'a' }, spec: { modelName: 'A_1' } }), 'A_1')
})

await t.test('durations become milliseconds', async (t) => {
  const cases = { '1h': 3_600_000, '1m30s': 90_000, '250ms': 250, '100us': 0.1, '1s500ms': 1500 }
  for (const [text, wanted] of Object.entries(cases)) t.equal(toMilliseconds(text), wanted, text)
})

const claim = (kind: string, name: string, creationTimestamp?: string) => ({
  kind,
  metadata: { name, creationTimestamp },
})

await t.test('who is older has the served name, then who is first by kind and name', async (t) => {
  const ranked = [
    claim('Model', 'z', '2026-01-01T00:00:00Z'),
    claim('Ensemble', 'b', '2026-01-01T00:00:01Z'),
    claim('Model', 'a', '2026-01-01T00:00:01Z'),
    claim('Model', 'b', '2026-01-01T00:00:01Z'),
  ]
  t.same(ranked.toReversed().toSorted(compareClaims), ranked)
  t.equal(compareClaims(claim('Model', 'a'), claim('Model', 'a')), 0)
})
