import { ROUTER_CONSOLES } from '@tutti/api'
import { type FlagTable, type FlagValues, flagRefusal } from '@tutti/chassis'
import { modelsOf } from '@tutti/engines'

const PULL_POLICY = {
  type: 'enum',
  values: ['Always', 'IfNotPresent', 'Never'],
  default: 'IfNotPresent',
} as const

const PLAIN_MODELS = modelsOf(({ image }) => image === 'step')
const PYTHON_MODELS = modelsOf(({ image }) => image === 'python')

/** Share of the requests. */
const ALL = '1'

/** The flags about the served namespaces, and the pods of routers and steps. */
export const WORKLOAD_FLAGS = {
  'watch-namespace': {
    type: 'string',
    repeatable: true,
    description:
      'Serve the Models and Ensembles of this namespace. Repeat the flag for more. Default: all namespaces.',
  },
  'step-image': {
    type: 'string',
    default: 'tutti/step:0.1.0',
    description: `Image of steps with ${PLAIN_MODELS}, and of the init containers that fetch models.`,
  },
  'step-python-image': {
    type: 'string',
    default: 'tutti/step-python:0.1.0',
    description: `Image of steps with ${PYTHON_MODELS}.`,
  },
  'step-cuda-image': {
    type: 'string',
    description: `In place of --step-image for ${PLAIN_MODELS} with devices of nvidia.com. Default: none, they have that image.`,
  },
  'step-python-cuda-image': {
    type: 'string',
    description: `In place of --step-python-image for ${PYTHON_MODELS} with devices of nvidia.com. Default: none.`,
  },
  'step-image-pull-policy': {
    ...PULL_POLICY,
    description: 'When Kubernetes pulls the images of steps.',
  },
  'router-image': {
    type: 'string',
    default: 'tutti/router:0.1.0',
    description: 'Image of routers.',
  },
  'router-image-pull-policy': {
    ...PULL_POLICY,
    description: 'When Kubernetes pulls that image.',
  },
  'router-replicas': {
    type: 'int',
    min: 1,
    max: 100,
    default: 2,
    description: 'Pods of a router whose Router says none in its scaling.',
  },
  'allow-router-image': {
    type: 'bool',
    default: false,
    description:
      'Routers may choose their image (`spec.image`), and containers (`spec.podTemplate`).',
  },
  'router-console': {
    type: 'enum',
    values: ROUTER_CONSOLES,
    default: 'None',
    description: 'Console of a router whose Router sets none.',
  },
  'step-defaults': {
    type: 'string',
    description:
      'What all pods of steps get unless their Model says otherwise, as JSON: `resources` and `podTemplate`, as in a Model.',
  },
  'router-defaults': {
    type: 'string',
    description: 'The same for the pods of routers, which their Router may change.',
  },
  'image-pull-secret': {
    type: 'string',
    repeatable: true,
    description:
      'Secret for pulling images, in the namespace of the pods. Repeat the flag for more.',
  },
  'https-proxy': {
    type: 'string',
    description: 'HTTPS_PROXY of the containers that fetch models. Default: none.',
  },
  'http-proxy': {
    type: 'string',
    description: 'HTTP_PROXY of the containers that fetch models. Default: none.',
  },
  'no-proxy': {
    type: 'string',
    description: 'NO_PROXY of the containers that fetch models. Default: none.',
  },
  'fetch-env': {
    type: 'string',
    description:
      'Environment variables of the containers that fetch models, as JSON: a list of `{name, value}`, or of `{name, valueFrom: {secretKeyRef: {name, key}}}` for a Secret in the namespace of the pods. Default: none.',
  },
  'cache-host-path': {
    type: 'string',
    description:
      'Folder of each node that keeps downloads of models for all its pods, with a folder for each namespace. Default: none.',
  },
  'cache-claim': {
    type: 'string',
    description:
      'PersistentVolumeClaim of each namespace that keeps downloads of models for all its pods, in place of a folder. Default: none.',
  },
  'cache-namespace': {
    type: 'string',
    repeatable: true,
    description: 'Namespace whose Models use the cache. Repeat the flag for more. Default: all.',
  },
  'cache-max-bytes': {
    type: 'int',
    min: 1,
    default: 100 * 2 ** 30,
    unit: 'bytes',
    description: 'Largest size of the cache of a namespace on a node, or in a claim.',
  },
  'image-volumes': {
    type: 'bool',
    default: false,
    description:
      'Pods mount images of `image://` as volumes. False: they copy the files, for which no node needs anything.',
  },
  'namespace-assigns-user': {
    type: 'bool',
    default: false,
    description:
      'Pods leave user and groups to what assigns those of their namespace, as on OpenShift. False: they run as 65532.',
  },
  'allow-host-access': {
    type: 'bool',
    default: false,
    description:
      'Models may use files (hostPath), namespaces, ports and privileges of their nodes.',
  },
  'network-policies': {
    type: 'bool',
    default: true,
    description: 'Create NetworkPolicies for routers and steps.',
  },
  'metrics-config': {
    type: 'string',
    repeatable: true,
    description:
      'NAME=VALUE for --metrics-config of routers and steps, such as histogram_latencies=true. Repeat the flag for more.',
  },
  'otlp-endpoint': {
    type: 'string',
    description:
      'Collector to which routers and steps send their spans, OTLP over HTTP: http://HOST:4318. Default: none.',
  },
  'otlp-sample-ratio': {
    type: 'string',
    default: ALL,
    description:
      "Share of the requests that are traced, 0 to 1, with --otlp-endpoint. A caller's choice is kept.",
  },
  'otlp-headers-secret': {
    type: 'string',
    description:
      'Secret in the namespace of the pods whose key headers, NAME=VALUE,..., goes to the collector, with --otlp-endpoint.',
  },
  'mesh-port': {
    type: 'string',
    repeatable: true,
    description:
      'Port of a service mesh that NetworkPolicies let the callers of pods reach, such as 15008 of Istio ambient. Repeat the flag for more.',
  },
  'scrape-namespace': {
    type: 'string',
    repeatable: true,
    description:
      'Let pods of this namespace, such as Prometheus, read the metrics of routers and steps. Repeat the flag for more.',
  },
} as const satisfies FlagTable

/** Checks the flags about the cache. @throws ServeError FLAG_INVALID for two places, or for bounds of none. */
export function checkCache(flags: FlagValues<typeof WORKLOAD_FLAGS>): void {
  const { 'cache-claim': claim, 'cache-host-path': path } = flags
  if (claim !== undefined && path !== undefined) {
    throw flagRefusal('--cache-claim', 'came with --cache-host-path, want one of the two')
  }
  if (claim !== undefined || path !== undefined) return
  const isDefault = flags['cache-max-bytes'] === WORKLOAD_FLAGS['cache-max-bytes'].default
  if (flags['cache-namespace'].length === 0 && isDefault) return
  const want = 'want it or --cache-host-path, with --cache-namespace or --cache-max-bytes'
  throw flagRefusal('--cache-claim', `got none, ${want}`)
}

/**
 * Checks the flags about OTLP.
 *
 * @throws ServeError FLAG_INVALID for a value with which pods would not start, or which they ignore.
 */
export function checkTelemetry(flags: FlagValues<typeof WORKLOAD_FLAGS>): void {
  const { 'otlp-endpoint': endpoint, 'otlp-sample-ratio': ratio } = flags
  if (endpoint === undefined) {
    if (flags['otlp-headers-secret'] === undefined && ratio === ALL) return
    const want = 'want the collector, with --otlp-headers-secret or --otlp-sample-ratio'
    throw flagRefusal('--otlp-endpoint', `got none, ${want}`)
  }
  const { protocol = '', href = '' } = URL.parse(endpoint) ?? {}
  if (!/^https?:$/.test(protocol) || /[?#]|\/v1\/traces\/?$/.test(href)) {
    const want = 'want the base of OTLP over HTTP, http://HOST:4318, without /v1/traces'
    throw flagRefusal('--otlp-endpoint', `got ${endpoint}, ${want}`)
  }
  if (!/^[\d.]+(e-?\d+)?$/i.test(ratio) || !(Number(ratio) <= 1)) {
    throw flagRefusal('--otlp-sample-ratio', `got ${ratio}, want a number from 0 to 1`)
  }
}

/** Reads the ports of `--mesh-port`. @throws ServeError FLAG_INVALID for a text that is none. */
export function readMeshPorts(texts: readonly string[]): readonly number[] {
  const odd = texts.find((text) => !(/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535))
  if (odd !== undefined) throw flagRefusal('--mesh-port', `got ${odd}, want a port, 1 to 65535`)
  return texts.map(Number)
}

const QUANTILE = '(0?\\.\\d+|0|1):(0?\\.\\d+|0|1)'
const QUANTILES = new RegExp(`^summary_quantiles=${QUANTILE}(,${QUANTILE})*$`)

/**
 * Checks a value of `--metrics-config`, because new pods would not start with a wrong one.
 *
 * @param text - one value, `NAME=VALUE`.
 * @throws ServeError FLAG_INVALID
 */
export function checkMetricsConfig(text: string): void {
  if (/^(counter|summary|histogram)_latencies=(true|false)$/.test(text)) return
  if (QUANTILES.test(text)) return
  const want = 'want counter_latencies, summary_latencies or histogram_latencies=true or false'
  throw flagRefusal('--metrics-config', `got "${text}", ${want}, or summary_quantiles=0.5:0.05,...`)
}
