import { ServeError } from '@tutti/errors'
import {
  type LocatedManifest,
  namespaceOf,
  type ParsedManifests,
  type Problem,
  parseManifests,
  problemOf,
} from '../manifests/parse-manifests.ts'
import { readManifestFiles } from '../manifests/read-files.ts'
import type { ReadRepository } from '../manifests/repository-configs.ts'
import { renderReport } from './report.ts'
import { checkManifests, isOpen } from './validate-command.ts'

/** The flags, the input and the terminal of a process that serves manifests. */
export interface ManifestSource {
  readonly flags: { readonly filename: readonly string[] }
  readonly input?: AsyncIterable<Uint8Array | string> | undefined
  /** Prints, for people, why manifests are refused, as `tutti validate` does. */
  err(text: string): void
}

/**
 * Reads the manifests that a process is to serve.
 *
 * @throws ServeError FLAG_INVALID for a file that cannot be read; CONFIG_INVALID for a manifest that cannot be read, or of a second
 *   namespace, after `err` has got the reasons.
 */
export async function readServedManifests(o: ManifestSource): Promise<ParsedManifests> {
  const parsed = parseManifests(await readManifestFiles(o.flags.filename, o.input))
  refuseManifests(o, parsed, [...parsed.problems, ...otherNamespaces(parsed.manifests)])
  return parsed
}

/**
 * Checks the manifests that a process is to serve, as `tutti validate` does. What is pending there is refused here: a process checks
 * once, at its start.
 *
 * @param known - the models of repositories, and what helps where a signature is not known.
 * @throws ServeError CONFIG_INVALID for a refused manifest, after `err` has got the reasons.
 */
export async function checkServedManifests(
  o: ManifestSource,
  parsed: ParsedManifests,
  known: { readonly repository: ReadRepository | undefined; readonly help?: string },
): Promise<void> {
  const { repository, help } = known
  const { problems, notes } = await checkManifests(parsed, repository)
  const pending = notes.filter(isOpen).map((note) => {
    const isHelped = help !== undefined && note.reason === 'SchemaPending'
    return isHelped ? { ...note, message: `${note.message}; ${help}` } : note
  })
  const all = [...problems, ...pending]
  for (const [model, error] of repository?.problems ?? []) {
    if (all.length > 0) o.err(`model '${model}': ${error}\n`)
  }
  refuseManifests(
    o,
    parsed,
    all,
    notes.filter((note) => !isOpen(note)),
  )
}

/** @throws ServeError CONFIG_INVALID if there are problems, after `err` has got them. */
export function refuseManifests(
  o: Pick<ManifestSource, 'err'>,
  { manifests, foreign }: ParsedManifests,
  problems: readonly Problem[],
  notes: readonly Problem[] = [],
): void {
  if (problems.length === 0) return
  o.err(renderReport({ checked: manifests.length, foreign, problems, notes }, 'text'))
  const text = `${problems.length} ${problems.length === 1 ? 'problem' : 'problems'} in manifests`
  throw new ServeError('CONFIG_INVALID', text, { details: { field: '--filename' } })
}

/** Finds manifests of other namespaces. One process is one namespace, so that a served name means one thing. */
function otherNamespaces(manifests: readonly LocatedManifest[]): readonly Problem[] {
  const [first] = manifests.map(namespaceOf)
  return manifests.flatMap((located) => {
    const namespace = namespaceOf(located)
    if (namespace === first) return []
    const text = `metadata.namespace: got '${namespace}', want '${first}' as before it: one process is one namespace`
    return [problemOf(located, ['metadata', 'namespace'], 'InvalidSpec', text)]
  })
}
