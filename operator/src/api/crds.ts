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
  UNSEEN,
} from '@tutti/api'
import type { z } from 'zod'
import { type StructuralSchema, toStructuralSchema } from './structural-schema.ts'

/** A column of `kubectl get`. */
type Column = readonly [
  name: string,
  type: 'string' | 'integer' | 'date',
  jsonPath: string,
  description: string,
]

/** The definition of a kind: its names, its schemas and its columns in `kubectl get`. */
export interface KindDefinition {
  readonly kind: string
  readonly plural: string
  readonly shortName: string
  readonly manifest: z.ZodType
  readonly spec: z.ZodType
  readonly status: z.ZodType
  readonly columns: readonly Column[]
  /** Columns that `kubectl get` shows only with `-o wide`. */
  readonly wideColumns: readonly Column[]
  /** Paths of the scale subresource. */
  readonly scale?: StructuralSchema
}

export const GROUP = 'tutti.dev'
export const VERSION = 'v1alpha1'

const ready = (field: string): string => `.status.conditions[?(@.type=="Ready")].${field}`

const READY: Column = ['Ready', 'string', ready('status'), 'Whether requests are answered.']
const REASON: Column = ['Reason', 'string', ready('reason'), 'Why, in a word.']
const AGE: Column = ['Age', 'date', '.metadata.creationTimestamp', 'Since when it is there.']
const SERVED: Column = ['Served as', 'string', '.status.modelName', 'What clients call it.']
const PODS: Column = [
  'Pods',
  'string',
  '.status.podsReady',
  'Pods that are ready, of those wanted.',
]
const URL: Column = ['URL', 'string', '.status.url', 'Where it is served.']
const GRPC: Column = ['gRPC', 'string', '.status.grpcUrl', 'Where it is served over gRPC.']

/** The scale subresource of a Model, and of a Router. */
const SCALE: StructuralSchema = {
  specReplicasPath: '.spec.scaling.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
}

export const KINDS: readonly KindDefinition[] = [
  {
    kind: 'Model',
    plural: 'models',
    shortName: 'tmodel',
    manifest: ModelManifest,
    spec: ModelSpec,
    status: ModelStatus,
    columns: [
      READY,
      ['Format', 'string', '.spec.modelFormat.name', 'What kind of model it is.'],
      PODS,
      REASON,
      AGE,
    ],
    wideColumns: [
      SERVED,
      URL,
      GRPC,
      ['Revision', 'string', '.status.latestReadyRevision', 'The newest revision that was ready.'],
      ['URI', 'string', '.spec.storageUri', 'Where its artifacts are.'],
      ['CPU', 'string', '.status.resources.requests.cpu', 'CPU that a pod requests.'],
      ['Memory', 'string', '.status.resources.requests.memory', 'Memory that a pod requests.'],
    ],
    scale: SCALE,
  },
  {
    kind: 'Ensemble',
    plural: 'ensembles',
    shortName: 'tens',
    manifest: EnsembleManifest,
    spec: EnsembleSpec,
    status: EnsembleStatus,
    columns: [
      READY,
      ['Steps', 'string', '.status.stepsReady', 'Steps that are ready, of all.'],
      URL,
      REASON,
      AGE,
    ],
    wideColumns: [SERVED, GRPC, ['Revision', 'string', '.status.revision', 'What is accepted.']],
  },
  {
    kind: 'Router',
    plural: 'routers',
    shortName: 'trouter',
    manifest: RouterManifest,
    spec: RouterSpec,
    status: RouterStatus,
    columns: [READY, PODS, REASON, AGE],
    wideColumns: [['All', 'integer', '.status.replicas', 'Pods, ready or not.']],
    scale: SCALE,
  },
]

/** Builds the CustomResourceDefinition of a kind. @throws ServeError INTERNAL for a schema that no CRD can express. */
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
          additionalPrinterColumns: [
            ...definition.columns.map(toColumn),
            ...definition.wideColumns.map((column) => ({ ...toColumn(column), priority: 1 })),
          ],
          schema: { openAPIV3Schema: rootSchema(definition) },
          subresources: { status: {}, ...(scale !== undefined && { scale }) },
        },
      ],
    },
  }
}

function toColumn([name, type, jsonPath, description]: Column) {
  return { name, type, jsonPath, description }
}

/**
 * Builds the schema of the root. The API server itself checks apiVersion, kind and metadata; the name is there because a rule
 * points at it.
 */
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
      status: { ...toStructuralSchema(status), default: { observedGeneration: UNSEEN } },
    },
    'x-kubernetes-validations': validations,
  }
}
