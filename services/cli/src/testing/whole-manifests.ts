import { ensembleManifest, modelManifest } from '@tutti/api/testing'

/** A manifest before it is checked, with any members. */
export type Manifest = Record<string, unknown>

/** The tensor that the manifests declare. */
export const tensor = { name: 'feature_fusion/Conv_7/Sigmoid:0', datatype: 'FP32', shape: [-1, 3] }

const METRICS = [
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
]

/** Manifests that together have every field at least once, and each provider of scaling. */
export const WHOLE: readonly Manifest[] = [
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
      minReplicas: 0,
      maxReplicas: 4,
      idleAfter: '10m',
      target: 8,
      behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
    },
    rollout: { maxSurge: 0, maxUnavailable: '25%', whenFull: 'Replace' },
    disruptionBudget: { maxUnavailable: 1 },
    podTemplate: {
      metadata: { labels: { team: 'a' }, annotations: { 'example.com/a': 'b c' } },
      spec: { priorityClassName: 'high', containers: [{ name: 'main', env: [] }] },
    },
    timeouts: { load: '10m', drain: '1m30s' },
    suspend: false,
    paused: false,
  }),
  modelManifest('scaled', {
    versionPolicy: { latest: { numVersions: 2 } },
    scaling: {
      provider: 'HPA',
      metrics: METRICS,
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
  modelManifest('claims', {
    accelerator: {
      claims: [
        { name: 'gpu', resourceClaimTemplateName: 'one-gpu' },
        { name: 'other', resourceClaimName: 'shared' },
      ],
    },
  }),
  modelManifest('apart', { placement: 'Alone' }),
  modelManifest('guest', { runsWith: 'labelled', resources: { requests: { cpu: '250m' } } }),
  modelManifest('left', { versionPolicy: { all: {} }, scaling: { provider: 'None', replicas: 3 } }),
  ensembleManifest('whole', {
    modelName: 'E_1',
    maxBatchSize: 4,
    inputs: [
      { ...tensor, name: 'x', optional: true, default: { datatype: 'FP32', value: [1.5, 2] } },
    ],
    outputs: [
      { name: 'y', from: 'a.y' },
      { name: 'w', firstOf: ['a.w', 'b.w'], optional: true },
      { name: 'z', from: 'b.o', datatype: 'BYTES', shape: [1] },
    ],
    steps: [
      {
        name: 'a',
        modelRef: { name: 'm', version: 3 },
        inputMap: { 'i:0': 'x' },
        outputMap: { o: 'middle' },
        timeout: '300ms',
        hedge: { after: '50ms', maxPercent: 5 },
        retry: {
          maxRetries: 2,
          retryOn: ['UNAVAILABLE', 'INTERNAL'],
          backoff: '20ms',
          budgetPercent: 30,
        },
        mayRunTwice: true,
        onError: { fallback: { modelRef: { name: 'm-small', version: 2 }, timeout: '1s' } },
      },
      { name: 'b', ensembleRef: { name: 'f' }, inputs: ['a', 'a.o'], dependsOn: ['a'] },
      {
        name: 'd',
        builtin: {
          name: 'tokenize',
          model: 'm',
          file: 'words.json',
          special: true,
          list: [1, 'x'],
        },
        inputMap: { text: 'x' },
      },
      {
        name: 'c',
        modelRef: { name: 'm' },
        firstOf: { i: ['a.o', 'b.o'] },
        constants: { k: { datatype: 'BYTES', value: ['t', 'u'], shape: [1, 2] } },
        parameters: { tier: 'gold', n: 3, flag: true },
        when: 'tensors["a.o"][0] > 0.5',
      },
      {
        name: 'e',
        modelRef: { name: 'm' },
        forEach: {
          items: { i: 'x' },
          count: 'a.n',
          maxItems: 64,
          maxParallel: 8,
          gather: 'Concat',
          onItemError: { default: { o: { datatype: 'FP32', value: [0.5, 1], shape: [2] } } },
        },
      },
      {
        name: 'f',
        modelRef: { name: 'm' },
        inputMap: { i: 'x' },
        loop: { carry: { i: 'f.o' }, until: 'tensors["f.o"][0] < 0.1', maxIterations: 50 },
      },
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
  routerManifest('default', {
    scaling: {
      provider: 'HPA',
      minReplicas: 2,
      maxReplicas: 4,
      metrics: METRICS,
      behavior: { scaleDown: { stabilizationWindowSeconds: 60, selectPolicy: 'Min' } },
    },
    image: 'registry.example/router:1',
    resources: { requests: { cpu: '500m' }, limits: { memory: '4Gi' } },
    nodeSelector: { disk: 'fast' },
    tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }],
    maxInFlightRequests: 7,
    maxInFlightBytes: '8Gi',
    timeouts: { drain: '1m30s' },
    logVerbose: 1,
    clientNamespaces: ['apps', 'web'],
    stepTransport: 'TLS',
    console: 'Show',
    builtins: {
      scaling: { minReplicas: 2, maxReplicas: 4, target: 8 },
      resources: { requests: { cpu: '1' }, limits: { memory: '3Gi' } },
      nodeSelector: { disk: 'fast' },
      tolerations: [{ key: 'b', operator: 'Equal', value: 'c', effect: 'NoExecute' }],
    },
  }),
  routerManifest('default', {}),
  ensembleManifest('edge', {
    expose: {
      gateway: { parentRef: { name: 'g', namespace: 'n', sectionName: 's' }, hosts: ['a'] },
    },
  }),
]

function routerManifest(name: string, spec: Manifest): Manifest {
  return { apiVersion: 'tutti.dev/v1alpha1', kind: 'Router', metadata: { name }, spec }
}
