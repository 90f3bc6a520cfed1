import { toAcceptedJson } from '@tutti/ensemble'
import type { PlainClient } from '@tutti/kube/testing'
import { normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import { MANAGED_BY } from '../runtime/children.ts'

export interface AcceptOptions {
  readonly plain: PlainClient
  /** As rigs have it. */
  readonly path: (plural: string, name?: string) => string
  /** metadata.name of a Model that is there, and its served name. */
  readonly name: string
  /** Its config.pbtxt, but for the name. */
  readonly text: string
  /** Default: 1. */
  readonly versions?: readonly number[]
}

/** Says that a Model is accepted and served, as the operator does once pods serve it. */
export async function acceptModel(o: AcceptOptions): Promise<void> {
  const { plain, path, name } = o
  const { uid, generation } = (await plain.get(path('models', name)))['metadata']
  const config = normaliseModelConfig(parseModelConfig(`name: "${name}" ${o.text}`, 'test'))
  const versions = (o.versions ?? [1]).map((version) => ({
    version,
    revision: version === 1 ? `revision-of-${name}` : `revision-of-${name}-${version}`,
  }))
  const resource = { name, uid, generation }
  const all = await plain.list(
    `${path('controllerrevisions')}?labelSelector=tutti.dev/model=${name}`,
  )
  await plain.create(path('controllerrevisions'), {
    metadata: {
      name: `${name}-model-${all.length + 1}`,
      labels: { ...MANAGED_BY, 'tutti.dev/accepted': 'model', 'tutti.dev/model': name },
      ownerReferences: [
        { apiVersion: 'tutti.dev/v1alpha1', kind: 'Model', name, uid, controller: true },
      ],
    },
    data: toAcceptedJson({ kind: 'Model', modelName: name, resource, config, versions }),
    revision: all.length + 1,
  })
}
