import { createHash } from 'node:crypto'
import { modelNameOf } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import { toJsonConfig } from '@tutti/model-config'
import type { EnsembleSource } from '@tutti/router'
import { readingFor, readRepositories } from '../manifests/repository-configs.ts'
import { NamespaceManifests } from '../validate/namespace-manifests.ts'
import {
  checkServedManifests,
  type ManifestSource,
  readServedManifests,
} from '../validate/served-manifests.ts'

/** Help where the signature of a model is not known. */
const HELP = 'want inputs and outputs in its Model, or its repository in --model-repository'

interface RouterManifests extends ManifestSource {
  readonly flags: ManifestSource['flags'] & {
    readonly 'model-repository': readonly string[]
    readonly 'model-config-name'?: string | undefined
  }
}

/**
 * Reads the Ensembles of manifests for a router, and checks all manifests as `tutti validate` does. What their models take and make is
 * known from the Models among the manifests and from the repositories: the steps that serve them may come later.
 *
 * @throws ServeError FLAG_INVALID for a file that cannot be read; CONFIG_INVALID for refused manifests, after `err` has got the reasons.
 */
export async function readEnsembleManifests(
  o: RouterManifests,
): Promise<readonly EnsembleSource[]> {
  const { filename, 'model-repository': repositories, 'model-config-name': configName } = o.flags
  if (filename.length === 0) return []
  const parsed = await readServedManifests(o)
  const reading = {
    ...readingFor(parsed.manifests),
    ...(configName !== undefined && { configName }),
  }
  const repository = await readRepositories(repositories, reading)
  await checkServedManifests(o, parsed, { repository, help: HELP })
  const manifests = parsed.manifests.map(({ manifest }) => manifest)
  const namespace = new NamespaceManifests(manifests, repository)
  return manifests.flatMap((manifest): EnsembleSource[] => {
    if (manifest.kind !== 'Ensemble') return []
    const checked = namespace.check(manifest)
    if (!checked.accepted) throw new ServeError('INTERNAL', `bug: ${checked.message}`)
    const { config, graph } = checked
    const revision = createHash('sha256')
      .update(JSON.stringify([toJsonConfig(config), graph]))
      .digest('hex')
    const versions = [{ version: 1, revision }]
    const definition = { config, graph }
    return [{ name: modelNameOf(manifest), definition, labels: {}, versions, reason: '' }]
  })
}
