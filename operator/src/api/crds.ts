import {
  EnsembleManifest,
  EnsembleSpec,
  EnsembleStatus,
  ModelManifest,
  ModelSpec,
  ModelStatus,
  RouterManifest,
  RouterSpec,
  RouterStatus,
} from '@tutti/ensemble'
import type { z } from 'zod'
import { type StructuralSchema, toStructuralSchema } from './structural-schema.ts'

/** A column of `kubectl get`. */
interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'date'
  readonly jsonPath: string
  readonly description: string
  /** Shown with `-o wide` only. */
  readonly isWide?: boolean
}

/** What a kind is called, and how it is shown. */
export interface KindDefinition {
  readonly kind: string
  readonly plural: string
  readonly shortName: string
  readonly manifest: z.ZodType
  readonly spec: z.ZodType
  readonly status: z.ZodType
  readonly columns: readonly Column[]
  /** Paths of the scale subresource. */
  readonly scale?: StructuralSchema
}

export const GROUP = 'tutti.dev'
export const VERSION = 'v1alpha1'

const ready = (field: string): string => `.status.conditions[?(@.type=="Ready")].${field}`

const COMMON = {
  ready: {
    name: 'Ready',
    type: 'string',
    jsonPath: ready('status'),
    description: 'Whether requests are answered.',
  },
  reason: {
    name: 'Reason',
    type: 'string',
    jsonPath: ready('reason'),
    description: 'Why, in a word.',
  },
  age: {
    name: 'Age',
    type: 'date',
    jsonPath: '.metadata.creationTimestamp',
    description: 'Since when it is there.',
  },
  served: {
    name: 'Served as',
    type: 'string',
    jsonPath: '.status.modelName',
    description: 'What clients call it.',
    isWide: true,
  },
  replicas: {
    name: 'Replicas',
    type: 'integer',
    jsonPath: '.status.readyReplicas',
    description: 'Pods that are ready.',
  },
} as const satisfies Record<string, Column>

export const KINDS: readonly KindDefinition[] = [
  {
    kind: 'Model',
    plural: 'models',
    shortName: 'tmodel',
    manifest: ModelManifest,
    spec: ModelSpec,
    status: ModelStatus,
    columns: [
      COMMON.ready,
      {
        name: 'Format',
        type: 'string',
        jsonPath: '.spec.modelFormat.name',
        description: 'What kind of model it is.',
      },
      COMMON.replicas,
      COMMON.reason,
      COMMON.age,
      COMMON.served,
      {
        name: 'Wanted',
        type: 'integer',
        jsonPath: '.status.desiredReplicas',
        description: 'Pods that are wanted.',
        isWide: true,
      },
      {
        name: 'Revision',
        type: 'string',
        jsonPath: '.status.latestReadyRevision',
        description: 'The newest revision that was ready.',
        isWide: true,
      },
      {
        name: 'URI',
        type: 'string',
        jsonPath: '.spec.storageUri',
        description: 'Where its artifacts are.',
        isWide: true,
      },
    ],
    scale: {
      specReplicasPath: '.spec.scaling.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    },
  },
  {
    kind: 'Ensemble',
    plural: 'ensembles',
    shortName: 'tens',
    manifest: EnsembleManifest,
    spec: EnsembleSpec,
    status: EnsembleStatus,
    columns: [
      COMMON.ready,
      {
        name: 'Steps',
        type: 'string',
        jsonPath: '.status.stepsReady',
        description: 'Steps that are ready, of all.',
      },
      {
        name: 'URL',
        type: 'string',
        jsonPath: '.status.url',
        description: 'Where it is served.',
      },
      COMMON.reason,
      COMMON.age,
      COMMON.served,
      {
        name: 'gRPC',
        type: 'string',
        jsonPath: '.status.grpcUrl',
        description: 'Where it is served over gRPC.',
        isWide: true,
      },
      {
        name: 'Revision',
        type: 'string',
        jsonPath: '.status.revision',
        description: 'What is accepted.',
        isWide: true,
      },
    ],
  },
  {
    kind: 'Router',
    plural: 'routers',
    shortName: 'trouter',
    manifest: RouterManifest,
    spec: RouterSpec,
    status: RouterStatus,
    columns: [
      COMMON.ready,
      COMMON.replicas,
      COMMON.reason,
      COMMON.age,
      {
        name: 'Pods',
        type: 'integer',
        jsonPath: '.status.replicas',
        description: 'Pods, ready or not.',
        isWide: true,
      },
    ],
  },
]

/** The CustomResourceDefinition of a kind. */
export function buildCrd(definition: KindDefinition): StructuralSchema {
  const { kind, plural, shortName, scale } = definition
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ['tutti'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          additionalPrinterColumns: definition.columns.map(({ isWide, ...column }) => ({
            ...column,
            ...(isWide === true && { priority: 1 }),
          })),
          schema: { openAPIV3Schema: rootSchema(definition) },
          subresources: { status: {}, ...(scale !== undefined && { scale }) },
        },
      ],
    },
  }
}

/** The API server itself checks apiVersion, kind and metadata; the name is there because a rule points at it. */
function rootSchema({ manifest, spec, status }: KindDefinition): StructuralSchema {
  const { description, 'x-kubernetes-validations': validations } = manifest.meta() ?? {}
  return {
    type: 'object',
    description,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object', properties: { name: { type: 'string' } } },
      spec: toStructuralSchema(spec),
      status: toStructuralSchema(status),
    },
    'x-kubernetes-validations': validations,
  }
}
