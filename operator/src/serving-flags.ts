import type { FlagTable } from '@tutti/chassis'

const PULL_POLICY = {
  type: 'enum',
  values: ['Always', 'IfNotPresent', 'Never'],
  default: 'IfNotPresent',
  description: 'When that image is pulled.',
} as const

/** The flags about what the operator serves, and the pods with which it does so. */
export const SERVING_FLAGS = {
  'watch-namespace': {
    type: 'string',
    repeatable: true,
    description:
      'A namespace whose Models and Ensembles are served; all namespaces if there is none.',
  },
  'step-image': {
    type: 'string',
    default: 'tutti/step:0.1.0',
    description: 'Image of steps, and of the init containers that fetch models.',
  },
  'step-image-pull-policy': PULL_POLICY,
  'router-image': {
    type: 'string',
    default: 'tutti/router:0.1.0',
    description: 'Image of routers.',
  },
  'router-image-pull-policy': PULL_POLICY,
  'router-replicas': {
    type: 'int',
    min: 1,
    max: 100,
    default: 2,
    description: 'Pods of a router whose Router names no number.',
  },
  'allow-router-image': {
    type: 'bool',
    default: false,
    description: 'Routers may name an image of their own (`spec.image`).',
  },
  'image-pull-secret': {
    type: 'string',
    repeatable: true,
    description: 'Name of a Secret, in the namespace of the pods, with which images are pulled.',
  },
  'allow-host-path': {
    type: 'bool',
    default: false,
    description:
      'Models may take files of the node (hostPath://, and hostPath volumes of a podTemplate).',
  },
  'network-policies': {
    type: 'bool',
    default: true,
    description: 'Routers and steps get NetworkPolicies.',
  },
  'scrape-namespace': {
    type: 'string',
    repeatable: true,
    description:
      'A namespace whose pods may read the metrics of routers and steps, Prometheus there, through their NetworkPolicies.',
  },
} as const satisfies FlagTable
