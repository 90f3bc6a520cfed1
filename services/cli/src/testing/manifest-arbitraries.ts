import * as fc from 'fast-check'
import { type Manifest, tensor, WHOLE } from './whole-manifests.ts'

/*
 * Manifests of every kind: whole ones, and whole ones that are changed in a place or two. Some changes are such as break a rule
 * of CEL, because chance alone would break few of them.
 */

/** Values that may replace another one. The texts are such as only some fields take. */
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
/** Durations that are none, none of that field's, or hard to quote. */
const DURATIONS = [
  '0s',
  '0ms0us',
  '1d',
  's',
  '5"',
  "it's 5s",
  '5s\n',
  '\u{1F600}',
  'auto',
  '1us',
  '100000s',
]

const shapes = { inputs: [{ ...tensor, shape: [2, 0] }], outputs: [{ ...tensor, shape: [0] }] }
const warmup = (input: Manifest) => [{ name: 'w', inputs: [{ ...tensor, data: 'Zero', ...input }] }]
const badKeys: readonly Manifest[] = [
  { 'a b': 'c' },
  { 'a/b/c': 'd' },
  { '': 'e' },
  { constructor: '' },
  { é: '' },
]
// 32 times three bytes of a key and two of each of 4080 characters.
const tooMany = Object.fromEntries(
  Array.from({ length: 32 }, (_, at) => [`k${10 + at}`, 'é'.repeat(4080)]),
)
const pods = (metadata: Manifest) => ({ podTemplate: { metadata } })
const POD_TEMPLATES: readonly Manifest[] = [
  ...badKeys.flatMap((map) => [pods({ labels: map }), pods({ annotations: map })]),
  pods({ annotations: tooMany }),
  pods({ labels: { 'tutti.dev/a': 'b' } }),
  pods({ labels: { 'x.tutti.dev/a': 'b' } }),
]
const behavior = { scaleUp: { selectPolicy: 'Max' } }
const someMetric = { type: 'Pods', pods: { metric: { name: 'q' }, target: { type: 'Value' } } }

const SCALINGS: readonly Manifest[] = [
  { minReplicas: 3, maxReplicas: 2 },
  { provider: 'None', minReplicas: 1 },
  { provider: 'None', metrics: [someMetric] },
  { replicas: 2 },
  { provider: 'HPA', replicas: 0 },
  { provider: 'HPA', minReplicas: 0, metrics: [someMetric] },
  { minReplicas: 1, idleAfter: '1m' },
  { minReplicas: 0, idleAfter: '0s' },
  { provider: 'HPA', target: 1 },
  { provider: 'HPA' },
  { metrics: [someMetric] },
  { behavior },
  { provider: 'None', behavior },
  { provider: 'HPA', metrics: [{ ...someMetric, type: 'Object' }] },
]

const MODEL_CHANGES: readonly Manifest[] = [
  ...[
    'ftp://a/b',
    's3://a',
    'gs://a',
    'as://a/b?c',
    'pvc://x/../y',
    'image://a/b',
    'https://me:x@h/m.tar',
  ].map(toUri),
  ...['image://a.b:5000/c/d', 'hostPath:///a\nb', "pvc://it's", 'image://localhost:1/a'].map(toUri),
  ...['hf://a', 'hf://a/b@/c', 'oci://a/b', 'oci://a:1/b', 'oci://a/../b:1'].map(toUri),
  { modelFormat: { name: 'onnx' }, instances: { count: 1, sharedInterpreter: true } },
  { maxBatchSize: 0, batching: { maxQueueDelay: '5ms' } },
  { maxBatchSize: 0, batching: { preferredBatchSizes: [] } },
  { storageUri: 'pvc://a', storage: { secretRef: { name: 'x' } } },
  { versionPolicy: {} },
  { versionPolicy: { all: {}, latest: { numVersions: 1 } } },
  shapes,
  { warmup: warmup({ shape: [0] }) },
  { warmup: warmup({ data: 'File' }) },
  { warmup: warmup({ file: 'f' }) },
  ...DURATIONS.flatMap((one) => [
    { batching: { maxQueueDelay: one } },
    { timeouts: { load: one, drain: one } },
  ]),
  ...badKeys.flatMap((map) => [{ accelerator: { nodeSelector: map } }]),
  { accelerator: { claims: [{ name: 'a' }] } },
  {
    accelerator: {
      claims: [{ name: 'a', resourceClaimName: 'a', resourceClaimTemplateName: 'b' }],
    },
  },
  { accelerator: { claims: [{ name: 'a', resourceClaimName: 'a' }], count: 1 } },
  ...POD_TEMPLATES,
  ...SCALINGS.map((scaling) => ({ scaling })),
  { rollout: { maxSurge: 0 } },
  { rollout: { maxSurge: '0%', maxUnavailable: '0%' } },
  { rollout: { maxSurge: '00%', maxUnavailable: 0 } },
  { disruptionBudget: {} },
  { disruptionBudget: { minAvailable: 0, maxUnavailable: 1 } },
]

const step = { name: 'a', modelRef: { name: 'm' }, inputMap: { x: 'x' } }
const hosts = ['a.example.com']
const ingress = { hosts }
const gateway = { hosts, parentRef: { name: 'g' } }
const identity = { name: 'i', tokenKey: 'k' }
const serviceAccount = { name: 's' }

const ENSEMBLE_CHANGES: readonly Manifest[] = [
  ...[{}, { optional: false }, { datatype: 'INT8' }].map((more) => {
    return { inputs: [{ ...tensor, ...more, default: { datatype: 'FP32', value: [1] } }] }
  }),
  { inputs: shapes.inputs },
  ...[{}, { from: 'a.y', firstOf: ['a.y', 'b.y'] }].map((one) => {
    return { outputs: [{ name: 'y', ...one }] }
  }),
  { outputs: [{ name: 'y', from: 'a.y', datatype: 'FP32' }] },
  { outputs: [{ name: 'y', from: 'a.y', datatype: 'FP32', shape: [0] }] },
  ...[
    { name: 'a', inputMap: { x: 'x' } },
    { ...step, ensembleRef: { name: 'e' } },
    ...[
      {},
      { modelRef: { name: 'm' } },
      { ensembleRef: { name: 'e' } },
      { parameters: { p: 1 } },
    ].map((more) => {
      return { name: 'a', builtin: { name: 'cast' }, inputMap: { x: 'x' }, ...more }
    }),
    ...[
      {},
      { name: '' },
      { name: 'cast', model: '' },
      { name: 'cast', model: 'm', more: [{ x: 1 }] },
    ].map((builtin) => {
      return { name: 'a', builtin, inputMap: { x: 'x' } }
    }),
    { name: 'a', builtin: { name: 'cast' }, inputs: ['x'], hedge: { after: '5ms' } },
    { name: 'a', modelRef: { name: 'm' } },
    { name: 'a', ensembleRef: { name: 'e' }, inputs: ['x'], hedge: { after: '5ms' } },
    ...DURATIONS.map((after) => ({ ...step, timeout: after, hedge: { after } })),
    ...DURATIONS.map((backoff) => ({ ...step, retry: { maxRetries: 1, backoff } })),
    ...[
      {},
      { fallback: {} },
      { default: {} },
      { default: {}, fallback: { modelRef: { name: 'n' } } },
      { fallback: { modelRef: { name: 'n' }, ensembleRef: { name: 'e' } } },
    ].map((onError) => ({ ...step, onError })),
    ...DURATIONS.map((timeout) => {
      return { ...step, onError: { fallback: { ensembleRef: { name: 'e' }, timeout } } }
    }),
    ...[[], ['CANCELLED'], ['OK'], ['INTERNAL', 'INTERNAL'], ['INTERNAL']].map((retryOn) => {
      return { ...step, retry: { maxRetries: 11, retryOn } }
    }),
    { ...step, forEach: { items: {}, maxItems: 1 } },
    { name: 'a', modelRef: { name: 'm' }, forEach: { items: { i: 'x' }, maxItems: 1 } },
    { ...step, loop: { carry: {}, maxIterations: 1 } },
  ].map((one) => ({ steps: [one] })),
  ...DURATIONS.map((timeout) => ({ timeout })),
  { rollout: {} },
  { placement: 'Together', resources: { limits: { 'nvidia.com/gpu': 1 } } },
  ...[
    {},
    { ingress, gateway },
    { ingress: { hosts, tls: [{ hosts: ['b'] }] } },
    ...[...badKeys, tooMany].map((annotations) => ({ ingress: { hosts, annotations } })),
    ...[
      {},
      { secretRef: { name: 's' }, identities: [{ name: 'i', serviceAccount }] },
      { identities: [identity] },
      { audience: 'a' },
      { identities: [{ name: 'i', serviceAccount }] },
      { secretRef: { name: 's' }, identities: [{ name: 'i' }, { ...identity, serviceAccount }] },
      { secretRef: { name: 's' }, quota: {} },
      { secretRef: { name: 's' }, quota: { concurrentRequests: 1, burst: 1 } },
      { secretRef: { name: 's' }, identities: [{ ...identity, quota: { burst: 1 } }] },
    ].map((auth) => ({ ingress, auth })),
  ].map((expose) => ({ expose })),
]

const ROUTER_SCALINGS: readonly Manifest[] = [
  { replicas: 0 },
  { minReplicas: 0 },
  { maxReplicas: 0 },
  { provider: 'Native' },
  { provider: 'Native', target: 1 },
  { provider: 'HPA', replicas: 2 },
  { replicas: 2, maxReplicas: 2 },
  { provider: 'None', behavior },
]

const ROUTER_CHANGES: readonly Manifest[] = [
  ...badKeys.map((nodeSelector) => ({ nodeSelector })),
  ...[...DURATIONS, '25h', '999ms', '24h1ms'].map((drain) => ({ timeouts: { drain } })),
  { clientNamespaces: ['*', 'a'] },
  { builtins: {} },
  ...badKeys.map((nodeSelector) => ({ builtins: { nodeSelector } })),
  ...POD_TEMPLATES,
  ...POD_TEMPLATES.map((builtins) => ({ builtins })),
  ...[...SCALINGS, { minReplicas: 0 }].map((scaling) => ({ builtins: { scaling } })),
  ...[...SCALINGS, ...ROUTER_SCALINGS].map((scaling) => ({ scaling })),
]

const CHANGES = new Map([
  ['Model', MODEL_CHANGES],
  ['Ensemble', ENSEMBLE_CHANGES],
  ['Router', ROUTER_CHANGES],
])
const NAMES = ['1a', 'a.b', 'default', 'x'.repeat(53), 'A']

/** A name, or members of the spec, that break a rule in most manifests. */
function breakRule(manifest: Manifest, at: number): Manifest {
  const specs = CHANGES.get(String(manifest['kind'])) ?? []
  const spec = specs[at % (specs.length + NAMES.length)]
  const name = NAMES[at % NAMES.length]
  if (spec === undefined) return { ...manifest, metadata: { name } }
  return { ...manifest, spec: { ...Object(manifest['spec']), ...structuredClone(spec) } }
}

/** Every whole manifest with each of the changes that break a rule, so that no rule is left to chance. */
export const brokenManifests: readonly Manifest[] = WHOLE.flatMap((whole) =>
  (CHANGES.get(String(whole['kind'])) ?? []).map((_, at) => breakRule(structuredClone(whole), at)),
)

/** Manifests of all kinds, changed at random or so that they break a rule, or in both ways. */
export const someManifest: fc.Arbitrary<Manifest> = fc
  .tuple(
    fc.constantFrom(...WHOLE),
    // Each change as often as any other.
    fc.option(fc.noBias(fc.nat({ max: 9999 }))),
    fc.oneof(fc.constant([]), fc.array(change, { minLength: 1, maxLength: 2 })),
  )
  .map(([whole, at, changes]) => {
    const manifest = structuredClone(whole)
    return changes.reduce(apply, at === null ? manifest : breakRule(manifest, at))
  })

function toUri(storageUri: string): Manifest {
  return { storageUri }
}

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

/** Tells whether a value is an object and not a list. */
export function isRecord(value: unknown): value is Manifest {
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
