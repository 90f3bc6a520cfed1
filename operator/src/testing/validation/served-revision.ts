import {
  type AcceptedModel,
  applyModelOverrides,
  ModelSpec,
  modelNameOf,
  toAcceptedJson,
  toModelOverrides,
} from '@tutti/ensemble'
import type { JsonObject, OwnerReference } from '@tutti/kube'
import { emptyModelConfig, parseModelConfig, selectVersions } from '@tutti/model-config'
import { MODEL, type ModelObject } from '../../api/kinds.ts'
import { ACCEPTED_LABEL } from '../../controllers/accepted-revisions.ts'
import { MANAGED_BY, type Owner, toOwnerReference } from '../../runtime/children.ts'
import { REPOSITORY, toConfigText } from './repository.ts'

const configs = new Map(
  REPOSITORY.map((model) => {
    const parsed = parseModelConfig(toConfigText(model), `${model.servedName}/config.pbtxt`)
    return [model.servedName, { parsed, versions: model.versions }]
  }),
)
/** Of a Model whose files nobody has: whoever wants one finds it. */
const ALL_VERSIONS = Array.from({ length: 16 }, (_, i) => i)

/** What the controller of Models writes, without its namespace. */
export interface ServedRevision {
  readonly metadata: {
    readonly name: string
    readonly labels: Readonly<Record<string, string>>
    readonly ownerReferences: readonly OwnerReference[]
  }
  readonly data: JsonObject
  readonly revision: number
}

/**
 * What is accepted of a Model once a pod serves what its manifest says, over what REPOSITORY has.
 *
 * @returns undefined if it serves nothing: nobody says what its tensors are, or it has no version.
 */
export function toServedRevision(
  model: Owner['object'] & Pick<ModelObject, 'spec'>,
): ServedRevision | undefined {
  const { name, uid, generation = 0 } = model.metadata
  const spec = ModelSpec.parse(model.spec)
  const modelName = modelNameOf({ metadata: model.metadata, spec })
  const stored = configs.get(modelName)
  const overrides = toModelOverrides(spec)
  const config = applyModelOverrides(stored?.parsed ?? emptyModelConfig(modelName), overrides)
  if (config.input.length === 0 || config.output.length === 0) return undefined
  const versions = versionsOf(config, stored?.versions)
  if (versions.length === 0) return undefined
  const accepted: AcceptedModel = {
    kind: 'Model',
    modelName,
    resource: { name, uid, generation },
    config,
    versions: versions.map((version) => ({ version, revision: `${name}-${version}` })),
  }
  return {
    metadata: {
      name: `${name}-model`,
      labels: { ...MANAGED_BY, [ACCEPTED_LABEL]: 'model', 'tutti.dev/model': name },
      ownerReferences: [toOwnerReference({ resource: MODEL, object: model })],
    },
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- toAcceptedJson makes an object of JSON
    data: toAcceptedJson(accepted) as JsonObject,
    revision: 1,
  }
}

function versionsOf(
  config: Parameters<typeof selectVersions>[0],
  there: readonly number[] | undefined,
): readonly number[] {
  if (there === undefined) return ALL_VERSIONS
  try {
    return selectVersions(config, there)
  } catch {
    // The pod does not become ready.
    return []
  }
}
