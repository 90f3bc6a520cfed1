import { applyModelOverrides, ModelSpec, modelNameOf, toModelOverrides } from '@tutti/api'
import { emptyModelConfig, parseModelConfig, selectVersions } from '@tutti/model-config'
import { MODEL, type ModelObject } from '../../api/kinds.ts'
import { type Owner, toOwnerReference } from '../../runtime/children.ts'
import { modelRevision } from '../accept-model.ts'
import { REPOSITORY, toConfigText } from './repository.ts'

const configs = new Map(
  REPOSITORY.map((model) => {
    const parsed = parseModelConfig(toConfigText(model), `${model.servedName}/config.pbtxt`)
    return [model.servedName, { parsed, versions: model.versions }]
  }),
)
/** Versions of a Model without files: every one that a step names is found. */
const ALL_VERSIONS = Array.from({ length: 16 }, (_, i) => i)

/**
 * Builds the ControllerRevision of a Model that serves REPOSITORY's configuration with the overrides of its manifest.
 *
 * @returns undefined if the Model serves nothing: its tensors are unknown, or it has no version.
 */
export function toServedRevision(model: Owner['object'] & Pick<ModelObject, 'spec'>) {
  const { name, generation = 0 } = model.metadata
  const spec = ModelSpec.parse(model.spec)
  const modelName = modelNameOf({ metadata: model.metadata, spec })
  const stored = configs.get(modelName)
  const overrides = toModelOverrides(spec)
  const config = applyModelOverrides(stored?.parsed ?? emptyModelConfig(modelName), overrides)
  if (config.input.length === 0 || config.output.length === 0) return undefined
  const versions = versionsOf(config, stored?.versions)
  if (versions.length === 0) return undefined
  return modelRevision({
    modelName,
    owner: toOwnerReference({ resource: MODEL, object: model }),
    generation,
    config,
    versions: versions.map((version) => ({ version, revision: `${name}-${version}` })),
    revision: 1,
  })
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
