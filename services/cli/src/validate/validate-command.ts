import { findModelWarnings, modelNameOf, nameConflict } from '@tutti/api'
import type { FlagTable, ProcessEnvironment } from '@tutti/chassis'
import { RESULT_FORMAT_FLAG, withFlags } from '@tutti/command-line/command'
import { ServeError } from '@tutti/errors'
import { locateFault } from '../manifests/locate-fault.ts'
import {
  type LocatedManifest,
  namespaceOf,
  type ParsedManifests,
  type Problem,
  parseManifests,
  problemOf,
} from '../manifests/parse-manifests.ts'
import { readManifestFiles } from '../manifests/read-files.ts'
import {
  type ReadRepository,
  readingFor,
  readRepositories,
} from '../manifests/repository-configs.ts'
import { checkRepositories } from './check-repository.ts'
import { findMissingFiles } from './missing-files.ts'
import { NamespaceManifests } from './namespace-manifests.ts'
import { type Report, renderReport, ValidateResult } from './report.ts'

export const VALIDATE_FLAGS = {
  filename: {
    type: 'string',
    path: 'file',
    aliases: ['f'],
    repeatable: true,
    description: 'File or folder of manifests, or - for standard input. Repeat the flag for more.',
  },
  'model-repository': {
    type: 'string',
    path: 'folder',
    repeatable: true,
    description:
      'Folder that holds the models, each in a folder of its served name. Repeat the flag for more. With -f, an unknown model is an error then; without -f, the repository itself is checked.',
  },
  format: RESULT_FORMAT_FLAG,
} as const satisfies FlagTable

export const validateCommand = withFlags(
  {
    usage: 'tutti validate -f FILE|DIR|- | --model-repository DIR [FLAGS]',
    flags: VALIDATE_FLAGS,
    result: ValidateResult,
  },
  async ({ flags, positionals }, environment) => {
    const { filename, 'model-repository': repositories } = flags
    if (positionals.length > 0 || (filename.length === 0 && repositories.length === 0)) {
      const got = positionals[0] === undefined ? 'got none' : `got '${positionals[0]}' without it`
      const want = 'want -f FILE, -f DIR or -f -, or a --model-repository to check'
      throw new ServeError('FLAG_INVALID', `--filename: ${got}, ${want}`)
    }
    const report =
      filename.length === 0
        ? await checkRepositories(repositories)
        : await checkFiles(filename, repositories, environment.input)
    environment.out(renderReport(report, flags.format))
    return report.problems.length === 0 ? 0 : 1
  },
)

async function checkFiles(
  paths: readonly string[],
  repositories: readonly string[],
  input: ProcessEnvironment['input'],
): Promise<Report> {
  const parsed = parseManifests(await readManifestFiles(paths, input))
  const repository = await readRepositories(repositories, readingFor(parsed.manifests))
  return await checkManifests(parsed, repository)
}

/** Checks all manifests, each together with the others of its namespace. */
export async function checkManifests(
  parsed: ParsedManifests,
  repository: ReadRepository | undefined,
): Promise<Report> {
  const problems = [...parsed.problems]
  const notes: Problem[] = []
  const namespaces = new Map<string, NamespaceManifests>()
  for (const [namespace, members] of Map.groupBy(parsed.manifests, namespaceOf)) {
    const manifests = members.map(({ manifest }) => manifest)
    namespaces.set(namespace, new NamespaceManifests(manifests, repository))
  }
  for (const located of parsed.manifests) {
    const namespace = namespaces.get(namespaceOf(located))
    const result = namespace === undefined ? [] : await checkOne(located, namespace, repository)
    for (const problem of result) {
      const isNote = isOpen(problem) || problem.reason === 'Warning'
      ;(isNote ? notes : problems).push(problem)
    }
  }
  return { checked: parsed.manifests.length, foreign: parsed.foreign, problems, notes }
}

/** Tells whether a problem goes once models come, or files: no error of a manifest, but of a server that starts without them. */
export function isOpen({ reason }: Problem): boolean {
  return reason === 'SchemaPending' || reason === 'FileMissing'
}

async function checkOne(
  located: LocatedManifest,
  namespace: NamespaceManifests,
  repository: ReadRepository | undefined,
): Promise<readonly Problem[]> {
  const { manifest } = located
  if (manifest.kind === 'Model') {
    const holder = namespace.holderOf(manifest)
    if (holder === undefined) {
      return findModelWarnings(manifest.spec).map((line) => toProblem(located, 'Warning', line))
    }
    const message = `modelName: ${nameConflict(modelNameOf(manifest), holder)}`
    return [toProblem(located, 'NameConflict', message)]
  }
  const result = namespace.check(manifest)
  if (!result.accepted) {
    const all = [result, ...(result.others ?? [])]
    return all.map(({ reason, message }) => toProblem(located, reason, message))
  }
  const missing = await findMissingFiles(result.graph, (model) => repository?.folders.get(model))
  return [
    ...missing.map(({ step, message }) => {
      const name = `steps[${step}](${result.graph.steps[step]?.name})`
      return toProblem(located, 'FileMissing', `${name}.builtin.file: ${message}`)
    }),
    ...result.warnings.map((warning) => toProblem(located, 'Warning', warning)),
  ]
}

/** @param line - begins with a path and a colon. */
function toProblem(located: LocatedManifest, reason: string, line: string): Problem {
  const at = locateFault(located.manifest.spec, line)
  return problemOf(located, at.length === 1 ? ['metadata', 'name'] : at, reason, line)
}
