import { z } from 'zod'
import { EnsembleSpec } from './ensemble/ensemble-spec.ts'
import { ModelSpec } from './model/model-spec.ts'
import { RouterSpec } from './router/router-spec.ts'
import { cel, transition } from './schema/cel.ts'
import { ObjectMeta } from './schema/object-meta.ts'

export const API_VERSION = 'tutti.dev/v1alpha1'

/** Children are named from it, and Services want a DNS label that begins with a letter. */
const RESOURCE_NAME = '^[a-z]([-a-z0-9]*[a-z0-9])?$'
const NAME_LENGTH = 52
const WANTED_NAME = `want a name of at most ${NAME_LENGTH} characters, a-z, 0-9 and -, that begins with a letter; what clients call it is modelName`

function fieldsOf<K extends string, T extends z.ZodType>(kind: K, spec: T) {
  return z.strictObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal(kind),
    metadata: ObjectMeta,
    spec,
    status: z.record(z.string(), z.unknown()).optional(),
  })
}

function manifest<
  K extends string,
  T extends z.ZodType<{ readonly modelName?: string | undefined }>,
>(kind: K, spec: T) {
  const named = cel(fieldsOf(kind, spec), {
    rule: `self.metadata.name.size() <= ${NAME_LENGTH} && self.metadata.name.matches('${RESOURCE_NAME}')`,
    message: WANTED_NAME,
    field: 'metadata.name',
  })
  return transition(named, {
    rule: '(has(self.spec.modelName) ? self.spec.modelName : self.metadata.name) == (has(oldSelf.spec.modelName) ? oldSelf.spec.modelName : oldSelf.metadata.name)',
    message: 'modelName cannot be changed: delete the resource and make another',
    fieldPath: '.spec.modelName',
  })
}

/** A Model as it is written and as the API server gives it; the operator reads `status` with `ModelStatus`. */
export const ModelManifest = manifest('Model', ModelSpec).describe(
  'A model of one served name: its artifacts, how it is executed, and how many pods do so.',
)
export type ModelManifest = z.infer<typeof ModelManifest>

/** An Ensemble as it is written and as the API server gives it; the operator reads `status` with `EnsembleStatus`. */
export const EnsembleManifest = manifest('Ensemble', EnsembleSpec).describe(
  'A graph of models that is served as one model.',
)
export type EnsembleManifest = z.infer<typeof EnsembleManifest>

/** The name of the only Router of a namespace. */
export const ROUTER_NAME = 'default'
const WANTED_ROUTER = `want ${ROUTER_NAME}: a namespace has one Router`

/** A Router as it is written and as the API server gives it; the operator reads `status` with `RouterStatus`. */
export const RouterManifest = cel(fieldsOf('Router', RouterSpec), {
  rule: `self.metadata.name == '${ROUTER_NAME}'`,
  message: WANTED_ROUTER,
  messageExpression: `'got ' + self.metadata.name + ', ${WANTED_ROUTER}'`,
  field: 'metadata.name',
}).describe(
  'The router of a namespace, which takes the requests for its Models and Ensembles. The operator makes one where it is missing.',
)
export type RouterManifest = z.infer<typeof RouterManifest>

export type Manifest = ModelManifest | EnsembleManifest

/** Returns the name by which clients call a Model or an Ensemble: `spec.modelName`, or else `metadata.name`. */
export function modelNameOf(resource: {
  readonly metadata: { readonly name: string }
  readonly spec?: { readonly modelName?: string | undefined }
}): string {
  return resource.spec?.modelName ?? resource.metadata.name
}
