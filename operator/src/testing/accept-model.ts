import { ACCEPTED_LABEL } from '@tutti/api'
import { type AcceptedModel, toAcceptedJson } from '@tutti/graph'
import type { JsonObject, OwnerReference } from '@tutti/kube'
import type { PlainClient } from '@tutti/kube/testing'
import { type ModelConfig, normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import { MANAGED_BY } from '../runtime/children.ts'
import type { Paths } from './namespaced.ts'

/** Builds the ControllerRevision of an accepted Model, as its controller writes it, without a namespace. */
export function modelRevision(o: {
  readonly modelName: string
  readonly owner: OwnerReference
  readonly generation: number
  readonly config: ModelConfig
  readonly versions: AcceptedModel['versions']
  readonly revision: number
}) {
  const { modelName, config, versions, owner, generation, revision } = o
  const { name, uid } = owner
  const resource = { name, uid, generation }
  return {
    metadata: {
      name: `${name}-model-${revision}`,
      labels: { ...MANAGED_BY, [ACCEPTED_LABEL]: 'model', 'tutti.dev/model': name },
      ownerReferences: [owner],
    },
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- toAcceptedJson makes an object of JSON
    data: toAcceptedJson({ kind: 'Model', modelName, resource, config, versions }) as JsonObject,
    revision,
  }
}

export interface AcceptOptions {
  readonly plain: PlainClient
  readonly path: Paths
  /** Name of an existing Model, which is also its served name. */
  readonly name: string
  /** Text of the model's config.pbtxt, without its name. */
  readonly text: string
  /** Versions of the model; default: version 1. */
  readonly versions?: readonly number[]
}

/** Creates the ControllerRevision of an accepted Model, as the operator does when pods serve it. */
export async function acceptModel(o: AcceptOptions): Promise<void> {
  const { plain, path, name } = o
  const { uid, generation } = (await plain.get(path('models', name)))['metadata']
  const config = normaliseModelConfig(parseModelConfig(`name: "${name}" ${o.text}`, 'test'))
  const versions = (o.versions ?? [1]).map((version) => ({
    version,
    revision: version === 1 ? `revision-of-${name}` : `revision-of-${name}-${version}`,
  }))
  const owner = { apiVersion: 'tutti.dev/v1alpha1', kind: 'Model', name, uid, controller: true }
  const ofModel = `${path('controllerrevisions')}?labelSelector=tutti.dev/model=${name}`
  const revision = (await plain.list(ofModel)).length + 1
  await plain.create(
    path('controllerrevisions'),
    modelRevision({ modelName: name, owner, generation, config, versions, revision }),
  )
}
