import t from 'tap'
import {
  build,
  child,
  deployment,
  main,
  POD_LABELS,
  podSpec,
  type Spec,
} from '../testing/build-model.ts'
import { stepSettings } from '../testing/step-settings.ts'

const SELECTOR = { 'app.kubernetes.io/component': 'step', 'tutti.dev/model': 'yolo' }

const SAME = { labelSelector: { matchLabels: SELECTOR }, matchLabelKeys: ['pod-template-hash'] }

const probe = (path: string, periodSeconds: number, failureThreshold: number) => ({
  httpGet: { path, port: 'metrics' },
  timeoutSeconds: 5,
  periodSeconds,
  failureThreshold,
})

const shm = (fields: Spec) => podSpec(fields).volumes?.find(({ name }) => name === 'shm')

await t.test('the pods of the smallest Model', async (t) => {
  t.same(podSpec(), {
    serviceAccountName: 'yolo-step',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 41,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      fsGroup: 65532,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: 'main',
        image: 'registry.example/tutti-step:1.0.0',
        imagePullPolicy: 'IfNotPresent',
        command: ['tutti-step'],
        args: [
          '--model-directory',
          'yolo=/models/yolo',
          '--model-overrides',
          'yolo={"modelFormat":{"name":"onnx"},"timeouts":{"load":"10m"}}',
          '--nats',
          'nats://tutti-nats:4222',
          '--nats-prefix',
          'tutti',
          '--repository-name',
          'vision',
          '--nats-creds-file',
          '/var/run/tutti/nats/nats.creds',
          '--grpc-port',
          '8001',
          '--http-port',
          '8000',
          '--metrics-port',
          '8002',
          '--exit-timeout-secs',
          '34',
        ],
        env: [{ name: 'HOME', value: '/tmp' }],
        securityContext: {
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
          readOnlyRootFilesystem: true,
        },
        terminationMessagePolicy: 'FallbackToLogsOnError',
        ports: [
          { name: 'grpc', containerPort: 8001, protocol: 'TCP' },
          { name: 'http', containerPort: 8000, protocol: 'TCP' },
          { name: 'metrics', containerPort: 8002, protocol: 'TCP' },
        ],
        resources: { requests: { cpu: '100m', memory: '256Mi' } },
        volumeMounts: [
          { name: 'model', mountPath: '/models/yolo', readOnly: true, subPath: 'faces/yolo' },
          { name: 'nats', mountPath: '/var/run/tutti/nats', readOnly: true },
          { name: 'tmp', mountPath: '/tmp' },
        ],
        startupProbe: probe('/readyz', 1, 660),
        readinessProbe: probe('/readyz', 5, 3),
        livenessProbe: probe('/livez', 10, 3),
        lifecycle: { preStop: { sleep: { seconds: 2 } } },
      },
    ],
    volumes: [
      { name: 'model', persistentVolumeClaim: { claimName: 'models', readOnly: true } },
      { name: 'nats', secret: { secretName: 'tutti-nats', defaultMode: 0o440 } },
      { name: 'tmp', emptyDir: {} },
    ],
    readinessGates: [{ conditionType: 'accepted.tutti.dev/yolo' }],
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: { ...SAME, topologyKey: 'topology.kubernetes.io/zone' } },
        ],
      },
    },
    topologySpreadConstraints: [
      {
        ...SAME,
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
      },
    ],
  })
})

const DIGEST = `sha256:${'a'.repeat(64)}`

await t.test('artifacts are fetched, or checked, before the model is loaded', async (t) => {
  const fetched = podSpec({
    storageUri: 's3://bucket/yolo',
    storage: { secretRef: { name: 'aws' }, digest: DIGEST },
    resources: { requests: { cpu: '1', 'example.com/fpga': 1 }, limits: { memory: '2Gi' } },
  })
  t.match(fetched.initContainers, [
    {
      name: 'fetch',
      args: [
        'fetch',
        '--uri',
        's3://bucket/yolo',
        '--to',
        '/models/yolo',
        '--progress-port',
        '8002',
        '--digest',
        DIGEST,
        '--secret-dir',
        '/var/run/tutti/credentials',
      ],
      volumeMounts: [
        { name: 'model', mountPath: '/models' },
        { name: 'credentials', mountPath: '/var/run/tutti/credentials', readOnly: true },
        { name: 'tmp', mountPath: '/tmp' },
      ],
      securityContext: { readOnlyRootFilesystem: true },
    },
  ])
  t.same(fetched.initContainers?.[0]?.resources, {
    requests: { cpu: '1' },
    limits: { memory: '2Gi' },
  })
  t.same(fetched.volumes?.slice(0, 2), [
    { name: 'model', emptyDir: {} },
    { name: 'credentials', secret: { secretName: 'aws', defaultMode: 0o440 } },
  ])
  t.same(fetched.containers[0]?.volumeMounts?.[0], {
    name: 'model',
    mountPath: '/models/yolo',
    subPath: 'yolo',
    readOnly: true,
  })
  const verified = podSpec({ storageUri: 'hostPath:///srv/yolo', storage: { digest: DIGEST } })
  t.same(verified.initContainers?.[0]?.args, [
    'fetch',
    '--verify',
    '/models/yolo',
    '--digest',
    DIGEST,
  ])
  t.same(verified.volumes?.[0], {
    name: 'model',
    hostPath: { path: '/srv/yolo', type: 'Directory' },
  })
  t.notOk(podSpec().initContainers)
  t.notOk(
    'subPath' in (podSpec({ storageUri: 'pvc://models' }).containers[0]?.volumeMounts?.[0] ?? {}),
  )
})

await t.test('an image copies its own files, and ours checks them', async (t) => {
  const storageUri = 'image://models.example/yolo:1/models/yolo'
  const resources = { limits: { memory: '2Gi', 'example.com/fpga': 1 } }
  const { initContainers, containers, volumes } = podSpec({ storageUri, resources })
  t.same(initContainers, [
    {
      name: 'fetch',
      image: 'models.example/yolo:1',
      command: ['cp'],
      args: ['-RLf', '/models/yolo/.', '/var/run/tutti/model'],
      env: [{ name: 'HOME', value: '/tmp' }],
      securityContext: {
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        readOnlyRootFilesystem: true,
      },
      terminationMessagePolicy: 'FallbackToLogsOnError',
      volumeMounts: [{ name: 'model', mountPath: '/var/run/tutti/model' }],
      resources: { requests: { cpu: '100m' }, limits: { memory: '2Gi' } },
    },
  ])
  t.same(volumes?.[0], { name: 'model', emptyDir: {} })
  const mount = { name: 'model', mountPath: '/models/yolo', readOnly: true }
  t.same(containers[0]?.volumeMounts?.[0], mount)
  const pinned = podSpec({ storageUri, storage: { digest: DIGEST } })
  t.match(pinned.initContainers, [
    { name: 'fetch', image: 'models.example/yolo:1' },
    {
      name: 'verify',
      image: 'registry.example/tutti-step:1.0.0',
      args: ['fetch', '--verify', '/models/yolo', '--digest', DIGEST],
      volumeMounts: [mount, { name: 'tmp', mountPath: '/tmp' }],
    },
  ])
  t.equal(pinned.initContainers?.length, 2)
  const policy = { initContainers: [{ name: 'fetch', imagePullPolicy: 'Always' }] }
  t.match(podSpec({ storageUri, podTemplate: { spec: policy } }).initContainers, [
    { image: 'models.example/yolo:1', imagePullPolicy: 'Always' },
  ])
})

await t.test('new credentials make new pods', async (t) => {
  const [one, two] = ['one', 'two'].map(
    (credentialsDigest) =>
      deployment({}, { credentialsDigest }).spec.template.metadata?.annotations,
  )
  t.equal(one?.['tutti.dev/credentials'], 'one')
  t.not(one?.['tutti.dev/template'], two?.['tutti.dev/template'])
})

await t.test('a podTemplate with an image of its own is the same as before', async (t) => {
  // An operator before there was an image for each format gave all of them this one.
  const image = stepSettings().image
  const before = { pythonImage: image }
  const after = { cudaImage: 'cuda', pythonCudaImage: 'python-cuda' }
  for (const name of ['onnx', 'pytorch', 'python'] as const) {
    const fields: Spec = {
      modelFormat: { name },
      storageUri: 'http://models.example/a.tar',
      accelerator: {},
      podTemplate: { spec: { containers: [{ name: 'main', image: 'own/image:1' }] } },
    }
    const { template } = deployment(fields, { settings: after }).spec
    t.same(template, deployment(fields, { settings: before }).spec.template, name)
    t.same(
      [...(template.spec.initContainers ?? []), ...template.spec.containers].map(
        (one) => one.image,
      ),
      [image, 'own/image:1'],
    )
  }
})

await t.test('Python code has shared memory within the limit of its memory', async (t) => {
  t.notOk(shm({}))
  t.same(shm({ modelFormat: { name: 'python' } })?.emptyDir, { medium: 'Memory', sizeLimit: '1Gi' })
  t.same(
    shm({ modelFormat: { name: 'pytorch' }, resources: { limits: { memory: '6Gi' } } })?.emptyDir,
    { medium: 'Memory', sizeLimit: '6Gi' },
  )
  t.ok(main({ modelFormat: { name: 'python' } })?.volumeMounts?.some(({ name }) => name === 'shm'))
})

await t.test('a served name with a colon has a folder that can be mounted', async (t) => {
  const { args, volumeMounts } = main({ modelName: 'a:b+c@1' }) ?? {}
  t.equal(args?.[1], 'a:b+c@1=/models/a%3Ab+c@1')
  t.equal(volumeMounts?.[0]?.mountPath, '/models/a%3Ab+c@1')
})

await t.test('time limits reach probes, the process and the pod', async (t) => {
  const fields: Spec = { timeouts: { load: '90s', drain: '2m' } }
  t.equal(main(fields)?.startupProbe?.failureThreshold, 150, 'the step, which says why, is first')
  t.match(main(fields)?.args?.[3], /"timeouts":\{"load":"90s"\}/)
  t.equal(deployment(fields).spec.progressDeadlineSeconds, 690)
  t.same(main(fields)?.args?.slice(-2), ['--exit-timeout-secs', '134'])
  t.equal(podSpec(fields).terminationGracePeriodSeconds, 141)
})

await t.test('what rules the configuration is told to the step, in a fixed order', async (t) => {
  const args = main({
    modelName: 'pre_gfpgan',
    warmup: [{ name: 'w', inputs: [{ shape: [3], name: 'x', datatype: 'FP32', data: 'Zero' }] }],
    maxBatchSize: 8,
  })?.args
  t.equal(args?.[1], 'pre_gfpgan=/models/pre_gfpgan')
  t.equal(
    args?.[3],
    'pre_gfpgan={"maxBatchSize":8,"modelFormat":{"name":"onnx"},"timeouts":{"load":"10m"},"warmup":[{"inputs":[{"data":"Zero","datatype":"FP32","name":"x","shape":[3]}],"name":"w"}]}',
  )
})

await t.test('settings of the installation reach the pods', async (t) => {
  const settings = {
    imagePullSecrets: ['registry'],
    nats: {
      servers: ['tls://a:4222', 'tls://b:4222'],
      prefix: 'p',
      secret: 'tutti-nats',
      hasAuthorities: true,
    },
  }
  t.same(podSpec({}, { settings }).imagePullSecrets, [{ name: 'registry' }])
  const args = main({}, { settings })?.args ?? []
  t.same(args.slice(4, 10), [
    '--nats',
    'tls://a:4222',
    '--nats',
    'tls://b:4222',
    '--nats-prefix',
    'p',
  ])
  t.ok(args.includes('/var/run/tutti/nats/ca.crt'))
  const measured = main({}, { settings: { metricsConfig: ['histogram_latencies=true'] } })?.args
  t.equal(measured?.at(-1), '--metrics-config=histogram_latencies=true')
  const network = { ...stepSettings().network, isEnabled: false }
  t.notOk(child(build({}, { settings: { network } }), 'NetworkPolicy'))
})

await t.test('a collector reaches the steps, and a pod template has the last word', async (t) => {
  const telemetry = { endpoint: 'http://c:4318', sampleRatio: '1', headersSecret: 'collector' }
  const template = {
    spec: {
      containers: [{ name: 'main', env: [{ name: 'OTEL_TRACES_SAMPLER_ARG', value: '0' }] }],
    },
  }
  const settings = { telemetry, transport: 'TLS' } as const
  const env = main({ podTemplate: template }, { settings })?.env ?? []
  const names = env.map(({ name }) => name.replace(/^OTEL_/, ''))
  t.same(names.slice(0, 4), ['HOME', 'POD_NAME', 'EXPORTER_OTLP_ENDPOINT', 'EXPORTER_OTLP_HEADERS'])
  t.same(names.slice(4), ['RESOURCE_ATTRIBUTES', 'SERVICE_NAME', 'TRACES_SAMPLER_ARG', 'POD_IP'])
  t.match(env.slice(5, 7), [{ value: 'tutti-step' }, { value: '0' }])
  t.same(deployment({}, { settings: { telemetry: undefined } }), deployment())
})

await t.test('steps take connections of routers where the Router says so', async (t) => {
  const off = { transport: undefined }
  t.same(deployment({}, { settings: off }), deployment(), 'pods stay as they are without it')
  const settings = { transport: 'TLS' } as const
  const { args = [], env, ports } = main({}, { settings }) ?? {}
  const at = args.indexOf('--direct')
  t.same(args.slice(at, at + 4), ['--direct', 'tls', '--direct-address', '[$(POD_IP)]:8003'])
  t.match(env?.at(-1), { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } })
  t.ok(ports?.some(({ name, containerPort }) => name === 'direct' && containerPort === 8003))
  const policy = JSON.stringify(child(build({}, { settings }), 'NetworkPolicy'))
  t.match(policy, '"from":[{"podSelector":{"matchLabels":{"app.kubernetes.io/component":"router",')
  t.match(policy, '"ports":[{"port":8003,"protocol":"TCP"}]')
  t.notMatch(JSON.stringify(build({})), /8003|POD_IP|--direct/)
})

await t.test('the pod template of a user is laid over, and cannot take our labels', async (t) => {
  const fields: Spec = {
    podTemplate: {
      metadata: { labels: { team: 'vision' }, annotations: { note: 'x' } },
      spec: { containers: [{ name: 'main', env: [{ name: 'A', value: '1' }] }], hostname: 'h' },
    },
  }
  const { template } = deployment(fields).spec
  t.same(template.metadata?.labels, { team: 'vision', ...POD_LABELS })
  t.match(template.metadata?.annotations, { note: 'x', 'tutti.dev/template': /^[0-9a-f]{32}$/ })
  t.match(template.spec, { hostname: 'h' })
  t.same(main(fields)?.env, [
    { name: 'HOME', value: '/tmp' },
    { name: 'A', value: '1' },
  ])
})
