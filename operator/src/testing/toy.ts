import {
  CONFIG_MAP,
  type Condition,
  DEPLOYMENT,
  type KubeObject,
  type Resource,
  SERVICE,
  type Stored,
} from '@tutti/kube'
import { installCrd, type PlainClient } from '@tutti/kube/testing'
import { type DesiredChild, desiredChild } from '../runtime/children.ts'

/** A custom resource for tests of the controller runtime. */
export interface Toy extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly text?: string
    /** Name of the toy's Service; absent: the toy has none. */
    readonly service?: string
    /** Milliseconds for which each reconcile blocks the event loop. */
    readonly holdMs?: number
  }
  readonly status?: ToyStatus
}

export interface ToyStatus {
  readonly observedGeneration?: number
  readonly text?: string
  readonly conditions?: readonly Condition[]
}

export const TOY: Resource<Toy> = {
  group: 'test.tutti.dev',
  version: 'v1',
  plural: 'toys',
  kind: 'Toy',
  namespaced: true,
}

/** Installs the CRD of toys, and waits until it is served. */
export async function installToys(plain: PlainClient): Promise<void> {
  const text = { type: 'string' }
  const condition = {
    type: 'object',
    properties: {
      type: text,
      status: text,
      reason: text,
      message: text,
      lastTransitionTime: text,
      observedGeneration: { type: 'integer' },
    },
    required: ['type'],
  }
  const conditions = {
    type: 'array',
    items: condition,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
  }
  const properties = {
    spec: {
      type: 'object',
      properties: {
        replicas: { type: 'integer' },
        text,
        service: text,
        holdMs: { type: 'integer' },
      },
    },
    status: {
      type: 'object',
      properties: { observedGeneration: { type: 'integer' }, text, conditions },
    },
  }
  await installCrd(plain, {
    metadata: { name: 'toys.test.tutti.dev' },
    spec: {
      group: 'test.tutti.dev',
      scope: 'Namespaced',
      names: { plural: 'toys', singular: 'toy', kind: 'Toy', listKind: 'ToyList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', properties } },
        },
      ],
    },
  })
}

/** Builds the children of a toy: a ConfigMap, a Deployment and, if the spec names one, a Service. */
export function toyChildren(toy: Stored<Toy>): readonly DesiredChild[] {
  const { namespace, name } = toy.metadata
  const place = namespace === undefined ? {} : { namespace }
  const { replicas, text, service } = toy.spec
  const labels = { toy: name }
  return [
    desiredChild(CONFIG_MAP, {
      metadata: { ...place, name: `${name}-text` },
      data: { text: text ?? '' },
    }),
    desiredChild(
      DEPLOYMENT,
      {
        metadata: { ...place, name: `${name}-step`, labels: { 'app.kubernetes.io/name': 'toy' } },
        spec: {
          ...(replicas === undefined ? {} : { replicas }),
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: {
              containers: [
                {
                  name: 'main',
                  image: 'localhost/toy:1',
                  // The server writes these in another form.
                  resources: { requests: { cpu: '1000m', memory: '1024Mi' } },
                  ports: [{ name: 'http', containerPort: 8000 }],
                  env: [],
                },
              ],
            },
          },
        },
      },
      { handsOverReplicas: replicas === undefined },
    ),
    ...(service === undefined
      ? []
      : [
          desiredChild(SERVICE, {
            metadata: { ...place, name: service },
            spec: { selector: labels, ports: [{ name: 'http', port: 80 }] },
          }),
        ]),
  ]
}
