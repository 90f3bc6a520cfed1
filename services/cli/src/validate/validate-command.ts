import { type FlagTable } from '@tutti/chassis'
import { modelNameOf, nameConflict } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import { type Command, withFlags } from '../command.ts'
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
import { type ReadRepository, readRepository } from '../manifests/repository-configs.ts'
import { NamespaceWorld } from './namespace-world.ts'
import { type Report, renderReport } from './report.ts'

export const VALIDATE_FLAGS = {
  filename: {
    type: 'string',
    aliases: ['f'],
    repeatable: true,
    description:
      'A file of manifests, a folder of them, or - for standard input; several may be given.',
  },
  'model-repository': {
    type: 'string',
    repeatable: true,
    description:
      'Where the models are that the manifests are about, each in a folder of its served name; several may be given. A model that is in neither is then an error.',
  },
  output: {
    type: 'enum',
    values: ['text', 'json'],
    default: 'text',
    description: 'How the verdicts are printed.',
  },
} as const satisfies FlagTable

export const validateCommand: Command = {
  name: 'validate',
  description: 'Judges manifests of Models and Ensembles as the operator would, without a cluster.',
  run: withFlags(
    { usage: 'tutti validate -f FILE|DIR|- [FLAGS]', flags: VALIDATE_FLAGS },
    async ({ flags, positionals }, around) => {
      if (flags.filename.length === 0 || positionals.length > 0) {
        const got = positionals[0] === undefined ? 'got none' : `got '${positionals[0]}' without it`
        throw new ServeError('FLAG_INVALID', `--filename: ${got}, want -f FILE, -f DIR or -f -`)
      }
      const repository = await readRepositories(flags['model-repository'])
      const files = await readManifestFiles(flags.filename, around.input)
      const report = judgeManifests(parseManifests(files), repository)
      around.out(renderReport(report, flags.output))
      return report.problems.length === 0 ? 0 : 1
    },
  ),
}

/** What cannot be read is as with a file: nothing was judged. */
async function readRepositories(paths: readonly string[]): Promise<ReadRepository | undefined> {
  if (paths.length === 0) return undefined
  try {
    return await readRepository(paths)
  } catch (cause) {
    const { reason, message } = ServeError.from(cause)
    if (reason !== 'REPOSITORY_UNREADABLE') throw cause
    throw new ServeError('FLAG_INVALID', `--model-repository: ${message}`, { cause })
  }
}

/** Judges all manifests, each with those of its namespace. */
export function judgeManifests(
  parsed: ParsedManifests,
  repository: ReadRepository | undefined,
): Report {
  const problems = [...parsed.problems]
  const notes: Problem[] = []
  const worlds = new Map<string, NamespaceWorld>()
  for (const [namespace, members] of Map.groupBy(parsed.manifests, namespaceOf)) {
    const manifests = members.map(({ manifest }) => manifest)
    worlds.set(namespace, new NamespaceWorld(manifests, repository))
  }
  for (const located of parsed.manifests) {
    const world = worlds.get(namespaceOf(located))
    const verdict = world === undefined ? [] : judgeOne(located, world)
    for (const problem of verdict) {
      const isNote = problem.reason === 'SchemaPending' || problem.reason === 'Warning'
      ;(isNote ? notes : problems).push(problem)
    }
  }
  return { judged: parsed.manifests.length, foreign: parsed.foreign, problems, notes }
}

function judgeOne(located: LocatedManifest, world: NamespaceWorld): readonly Problem[] {
  const { manifest } = located
  if (manifest.kind === 'Model') {
    const holder = world.holderOf(manifest)
    if (holder === undefined) return []
    const message = `modelName: ${nameConflict(modelNameOf(manifest), holder)}`
    return [toProblem(located, 'NameConflict', message)]
  }
  const verdict = world.judge(manifest)
  if (!verdict.accepted) return [toProblem(located, verdict.reason, verdict.message)]
  return verdict.warnings.map((warning) => toProblem(located, 'Warning', warning))
}

/** @param line - begins with a path and a colon. */
function toProblem(located: LocatedManifest, reason: string, line: string): Problem {
  const at = locateFault(located.manifest.spec, line)
  return problemOf(located, at.length === 1 ? ['metadata', 'name'] : at, reason, line)
}
