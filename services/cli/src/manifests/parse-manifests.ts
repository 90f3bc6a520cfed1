import {
  API_VERSION,
  findRouterProblems,
  type Manifest,
  parseManifest,
  type SchemaProblem,
} from '@tutti/api'
import { z } from 'zod'
import type { ManifestFile } from './read-files.ts'
import { type Position, readYaml, type YamlDocument } from './yaml-documents.ts'

/** A fault in a file, with its place. */
export const Problem = z.object({
  file: z.string(),
  line: z.int().meta({ description: 'From 1 on.' }),
  column: z.int().meta({ description: 'From 1 on.' }),
  resource: z.string().exactOptional().meta({
    description: 'Such as Ensemble/plate-reader; absent if that cannot be told.',
  }),
  path: z.string().meta({
    description:
      'From the root of the manifest, e.g. spec.steps[2].name, or of config.pbtxt, e.g. ensemble_scheduling.step[2].input_map[x]; empty if the message names it.',
  }),
  reason: z.string().meta({
    description:
      'As in the condition Accepted, or SyntaxError; of a model in a repository also the reason of its error, such as ConfigInvalid.',
  }),
  message: z.string(),
})
export type Problem = z.infer<typeof Problem>

/** A manifest that fits its schema, with its file and the positions of its values. */
export interface LocatedManifest {
  readonly manifest: Manifest
  readonly file: string
  /** Finds the position of a value in the file. @param path - path from the root of the manifest. */
  readonly positionOf: (path: readonly PropertyKey[]) => Position
}

/** Gives the namespace of a manifest; `default` if it is absent or empty. */
export function namespaceOf({ manifest }: LocatedManifest): string {
  return manifest.metadata.namespace || 'default'
}

/** Builds a problem at a path of a manifest. @param message - text that begins with the field and a colon. */
export function problemOf(
  { manifest, file, positionOf }: LocatedManifest,
  path: readonly (string | number)[],
  reason: string,
  message: string,
): Problem {
  const resource = `${manifest.kind}/${manifest.metadata.name}`
  return { file, ...positionOf(path), resource, path: '', reason, message }
}

export interface ParsedManifests {
  readonly manifests: readonly LocatedManifest[]
  readonly problems: readonly Problem[]
  /** Number of resources that are not manifests of Models and Ensembles, such as those of other API groups. */
  readonly foreign: number
}

const [GROUP = ''] = API_VERSION.split('/')

/** Parses files, and checks each Model, Ensemble and Router in them against its schema. Faults are among `problems`. */
export function parseManifests(files: readonly ManifestFile[]): ParsedManifests {
  const manifests: LocatedManifest[] = []
  const problems: Problem[] = []
  let foreign = 0
  for (const { name: file, text } of files) {
    const yaml = readYaml(text)
    for (const problem of yaml.problems) {
      problems.push({ ...problem, file, path: '', reason: 'SyntaxError' })
    }
    for (const item of yaml.documents.flatMap(itemsOf)) {
      const parsed = parseItem(file, item)
      if (parsed === 'foreign') foreign += 1
      else if (Array.isArray(parsed)) problems.push(...parsed)
      else manifests.push(parsed)
    }
  }
  return { manifests, problems, foreign }
}

/** A resource within a document: the document itself, or an item of a List. */
interface Item extends YamlDocument {
  readonly value: unknown
}

function itemsOf(document: YamlDocument): readonly Item[] {
  const list = z
    .object({ kind: z.string().regex(/List$/), items: z.array(z.unknown()) })
    .safeParse(document.value)
  if (!list.success) return [document]
  return list.data.items.map((value, i) => ({
    value,
    positionOf: (path) => document.positionOf(['items', i, ...path]),
  }))
}

const Header = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.object({ name: z.string() }).optional().catch(undefined),
})

function parseItem(file: string, item: Item): LocatedManifest | Problem[] | 'foreign' {
  const { value, positionOf } = item
  const header = Header.safeParse(value)
  const problem = (path: readonly PropertyKey[], message: string, resource?: string): Problem => ({
    file,
    ...positionOf(path),
    ...(resource !== undefined && { resource }),
    path: z.core.toDotPath([...path]),
    reason: 'InvalidSpec',
    message,
  })
  if (!header.success)
    return [problem([], 'got no apiVersion and kind, want a Kubernetes resource')]
  const { apiVersion, kind, metadata } = header.data
  const resource = `${kind}/${metadata?.name ?? '?'}`
  if (apiVersion.split('/')[0] !== GROUP) return 'foreign'
  if (apiVersion !== API_VERSION) {
    return [problem(['apiVersion'], `got '${apiVersion}', want ${API_VERSION}`, resource)]
  }
  const toProblems = (problems: readonly SchemaProblem[]): Problem[] =>
    problems.map(({ path, message }) => problem(path, message, resource))
  if (kind === 'Router') {
    const problems = toProblems(findRouterProblems(value))
    // Only the operator reads it.
    return problems.length === 0 ? 'foreign' : problems
  }
  if (kind !== 'Model' && kind !== 'Ensemble') {
    return [problem(['kind'], `got '${kind}', want Model, Ensemble or Router`, resource)]
  }
  const parsed = parseManifest(kind, value)
  if (parsed.success) return { manifest: parsed.data, file, positionOf }
  return toProblems(parsed.problems)
}
