import { type FlagTable, flagRefusal } from '@tutti/chassis'

const PULL_POLICY = {
  type: 'enum',
  values: ['Always', 'IfNotPresent', 'Never'],
  default: 'IfNotPresent',
} as const

/** The flags about what the operator serves, and the pods with which it does so. */
export const SERVING_FLAGS = {
  'watch-namespace': {
    type: 'string',
    repeatable: true,
    description:
      'Serve the Models and Ensembles of this namespace. Repeat the flag for more. Default: all namespaces.',
  },
  'step-image': {
    type: 'string',
    default: 'tutti/step:0.1.0',
    description: 'Image of steps with ONNX models, and of the init containers that fetch models.',
  },
  'step-python-image': {
    type: 'string',
    default: 'tutti/step-python:0.1.0',
    description: 'Image of steps with Python and TorchScript models.',
  },
  'step-cuda-image': {
    type: 'string',
    description:
      'In place of --step-image for ONNX models with devices of nvidia.com. Default: none, they have that image.',
  },
  'step-python-cuda-image': {
    type: 'string',
    description:
      'In place of --step-python-image for Python and TorchScript models with devices of nvidia.com. Default: none.',
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
    description: 'Pods of a router whose Router sets no replicas.',
  },
  'allow-router-image': {
    type: 'bool',
    default: false,
    description: 'Routers may choose their image (`spec.image`).',
  },
  'image-pull-secret': {
    type: 'string',
    repeatable: true,
    description:
      'Secret for pulling images, in the namespace of the pods. Repeat the flag for more.',
  },
  'allow-host-access': {
    type: 'bool',
    default: false,
    description:
      'Models may use files (hostPath), namespaces, ports and privileges of their nodes.',
  },
  // Of the release before, whose chart passes it.
  'allow-host-path': {
    type: 'bool',
    default: false,
    description:
      'Deprecated. True means the same as --allow-host-access; false leaves it to that flag.',
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
  'scrape-namespace': {
    type: 'string',
    repeatable: true,
    description:
      'Let pods of this namespace, such as Prometheus, read the metrics of routers and steps. Repeat the flag for more.',
  },
} as const satisfies FlagTable

const QUANTILE = '(0?\\.\\d+|0|1):(0?\\.\\d+|0|1)'
const QUANTILES = new RegExp(`^summary_quantiles=${QUANTILE}(,${QUANTILE})*$`)

/**
 * @param text - a value of `--metrics-config`, as routers and steps take it: with another one all new pods would end at their start.
 * @throws ServeError FLAG_INVALID
 */
export function checkMetricsConfig(text: string): void {
  if (/^(counter|summary|histogram)_latencies=(true|false)$/.test(text)) return
  if (QUANTILES.test(text)) return
  const want = 'want counter_latencies, summary_latencies or histogram_latencies=true or false'
  throw flagRefusal('--metrics-config', `got "${text}", ${want}, or summary_quantiles=0.5:0.05,...`)
}
