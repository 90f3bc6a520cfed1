import { createHash } from 'node:crypto'
import { modelNameOf } from '@tutti/api'
import type { ProcessEnvironment } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { toJsonConfig } from '@tutti/model-config'
import type { EnsembleSource } from '@tutti/router'
import { parseManifests } from '../manifests/parse-manifests.ts'
import { readManifestFiles } from '../manifests/read-files.ts'
import { readingFor, readRepositories } from '../manifests/repository-configs.ts'
import { NamespaceManifests } from '../validate/namespace-manifests.ts'
import { renderReport } from '../validate/report.ts'
import { checkManifests, isOpen } from '../validate/validate-command.ts'

/** Help behind a problem that only a cluster solves by itself. */
const NEEDED = 'want inputs and outputs in its Model, or its repository in --model-repository'

interface ReadFlags {
  readonly filename: readonly string[]
  readonly 'model-repository': readonly string[]
}

/**
 * Reads the Ensembles of manifests for a router, and checks all manifests as `tutti validate` does. What their models take and make is
 * known from the Models among the manifests and from the repositories: the steps that serve them may come later.
 *
 * @param o.err - gets the reasons, for people, why manifests are refused.
 * @throws ServeError FLAG_INVALID for a file that cannot be read; CONFIG_INVALID for refused manifests.
 */
export async function readEnsembleManifests(
  { filename, 'model-repository': repositories }: ReadFlags,
  o: Pick<ProcessEnvironment, 'input' | 'err'>,
): Promise<readonly EnsembleSource[]> {
  if (filename.length === 0) return []
  const parsed = parseManifests(await readManifestFiles(filename, o.input))
  const repository = await readRepositories(repositories, readingFor(parsed.manifests))
  const report = await checkManifests(parsed, repository)
  // A router cannot check what it does not know at its start.
  const pending = report.notes.filter(isOpen).map((note) => {
    return note.reason === 'SchemaPending'
      ? { ...note, message: `${note.message}; ${NEEDED}` }
      : note
  })
  const problems = [...report.problems, ...pending]
  if (problems.length > 0) {
    const notes = report.notes.filter((note) => !isOpen(note))
    o.err(renderReport({ ...report, problems, notes }, 'text'))
    const text = `${problems.length} ${problems.length === 1 ? 'problem' : 'problems'} in manifests`
    throw new ServeError('CONFIG_INVALID', text, { details: { field: '--filename' } })
  }
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
