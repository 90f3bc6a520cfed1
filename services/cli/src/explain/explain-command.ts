import { modelNameOf } from '@tutti/api'
import { type FlagTable, renderJson } from '@tutti/chassis'
import { RESULT_FORMAT_FLAG, withFlags } from '@tutti/command-line/command'
import {
  Explanation,
  explainPlan,
  type FoundPlan,
  planAccepted,
  REQUESTED_OUTPUT_FLAG,
  renderExplanation,
} from '@tutti/command-line/explain'
import { ServeError } from '@tutti/errors'
import { planEnsemble, readConfigGraph } from '@tutti/graph'
import { isEnsembleConfig, type ModelConfig } from '@tutti/model-config'
import { type LocatedManifest, namespaceOf, parseManifests } from '../manifests/parse-manifests.ts'
import { readManifestFiles } from '../manifests/read-files.ts'
import {
  type ReadRepository,
  readingFor,
  readRepositories,
} from '../manifests/repository-configs.ts'
import { NamespaceManifests } from '../validate/namespace-manifests.ts'
import { renderProblem } from '../validate/report.ts'
import { VALIDATE_FLAGS } from '../validate/validate-command.ts'

export const EXPLAIN_FLAGS = {
  filename: VALIDATE_FLAGS.filename,
  'model-repository': {
    ...VALIDATE_FLAGS['model-repository'],
    description:
      'Folder that holds the ensemble, or the models of an Ensemble in a file. Repeat the flag for more.',
  },
  'requested-output': REQUESTED_OUTPUT_FLAG,
  format: RESULT_FORMAT_FLAG,
} as const satisfies FlagTable

/** There is no cluster here in which a Model could become ready. */
const SIGNATURES_HINT =
  '; --model-repository DIR gives the signatures of the models that are in that folder, or write inputs and outputs in the Models'

export const explainCommand = withFlags(
  {
    usage: 'tutti explain ENSEMBLE -f FILE|DIR|- | --model-repository DIR [FLAGS]',
    flags: EXPLAIN_FLAGS,
    result: Explanation,
  },
  async ({ flags, positionals }, environment) => {
    const [name, ...more] = positionals
    if (name === undefined || more.length > 0) {
      throw new ServeError('FLAG_INVALID', `got ${positionals.length} ensemble names, want one`)
    }
    const paths = flags['model-repository']
    if (flags.filename.length === 0 && paths.length === 0) {
      throw new ServeError('FLAG_INVALID', 'got neither -f nor --model-repository, want one')
    }
    const files = await readManifestFiles(flags.filename, environment.input)
    const { manifests, problems } = parseManifests(files)
    const repository = await readRepositories(paths, readingFor(manifests))
    const [broken] = problems
    if (broken !== undefined) {
      throw new ServeError('CONFIG_INVALID', `${renderProblem(broken)}; tutti validate tells all`)
    }
    const { plan, modelOf } = findPlan(name, manifests, repository)
    const explanation = explainPlan(plan, modelOf, flags['requested-output'])
    environment.out(
      flags.format === 'json' ? renderJson(explanation) : renderExplanation(explanation),
    )
    return 0
  },
)

/** Finds the plan. An Ensemble of the files goes before an ensemble of the repository with the same name. */
function findPlan(
  name: string,
  manifests: readonly LocatedManifest[],
  repository: ReadRepository | undefined,
): FoundPlan {
  const named = manifests.filter(
    ({ manifest }) => manifest.kind === 'Ensemble' && modelNameOf(manifest) === name,
  )
  const [found, ...others] = named
  if (found === undefined) return planOfRepository(name, manifests, repository)
  if (others.length > 0) {
    const where = named.map((one) => `${namespaceOf(one)} (${one.file})`).join(', ')
    throw new ServeError('FLAG_INVALID', `'${name}' is in ${where}; want files with one of them`)
  }
  return planOfManifest(found, manifests, repository)
}

function planOfManifest(
  found: LocatedManifest,
  manifests: readonly LocatedManifest[],
  repository: ReadRepository | undefined,
): FoundPlan {
  const { manifest } = found
  const members = manifests.filter((one) => namespaceOf(one) === namespaceOf(found))
  const namespace = new NamespaceManifests(
    members.map((one) => one.manifest),
    repository,
  )
  // Only Ensembles are looked for.
  if (manifest.kind !== 'Ensemble') throw new ServeError('INTERNAL', `bug: ${manifest.kind}`)
  const check = namespace.check(manifest)
  if (!check.accepted) {
    const faults = [check, ...(check.others ?? [])]
    const lines = faults.map((one) => `${one.message} (${one.reason})`)
    const isPending = faults.some(({ reason }) => reason === 'SchemaPending')
    const hint = isPending && repository === undefined ? SIGNATURES_HINT : ''
    const text = `Ensemble '${manifest.metadata.name}' is not accepted: ${lines.join('; also ')}${hint}`
    throw new ServeError('ENSEMBLE_INVALID', text)
  }
  return planAccepted(check)
}

function planOfRepository(
  name: string,
  manifests: readonly LocatedManifest[],
  repository: ReadRepository | undefined,
): FoundPlan {
  const config = repository?.configs.get(name)
  const modelOf = (model: string): ModelConfig | undefined => repository?.configs.get(model)
  if (config !== undefined && isEnsembleConfig(config)) {
    const plan = planEnsemble({
      config,
      graph: readConfigGraph(config),
      lookup: (model) => lookupIn(repository, model),
    })
    return { plan, modelOf }
  }
  const problem = repository?.problems.get(name)
  if (problem !== undefined) throw new ServeError('CONFIG_INVALID', problem)
  const there = [
    ...manifests.flatMap(({ manifest }) =>
      manifest.kind === 'Ensemble' ? modelNameOf(manifest) : [],
    ),
    ...[...(repository?.configs.values() ?? [])].filter(isEnsembleConfig).map((one) => one.name),
  ]
  const what = config === undefined ? `no ensemble '${name}'` : `'${name}' is no ensemble`
  throw new ServeError('MODEL_NOT_FOUND', `${what}; there is ${there.join(', ') || 'none'}`)
}

function lookupIn(repository: ReadRepository | undefined, model: string) {
  const config = repository?.configs.get(model)
  const configError = repository?.problems.get(model)
  if (configError !== undefined) return { readyVersions: [], configError }
  return config && { config, readyVersions: repository?.versions.get(model) ?? [] }
}
