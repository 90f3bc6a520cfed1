import { ServeError } from '@tutti/errors'
import { type Document, isScalar, LineCounter, parseAllDocuments, type Tags } from 'yaml'
import { offsetOf, startOf } from './yaml-nodes.ts'

/** A place in a file. Line and column count from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** One document of a YAML file, as JSON. */
export interface YamlDocument {
  readonly value: unknown
  /** Finds the position of the value at a path; for an absent value, that of its nearest parent. */
  readonly positionOf: (path: readonly PropertyKey[]) => Position
}

/** A problem that keeps a file from being read. */
export interface YamlProblem extends Position {
  readonly message: string
}

export interface YamlFile {
  readonly documents: readonly YamlDocument[]
  readonly problems: readonly YamlProblem[]
}

/** Most aliases. An alias may repeat a node; a small file must not become a large one. */
const MAX_ALIASES = 100

/** kubectl reads YAML 1.1 (`y` is true), but knows neither times nor base 60, nor sets and the like. */
const FOREIGN = new Set(['binary', 'omap', 'pairs', 'set', 'timestamp', 'intTime', 'floatTime'])

function asKubectl(tags: Tags): Tags {
  return tags.filter((tag) => {
    if (typeof tag === 'string') return !FOREIGN.has(tag)
    return tag.format !== 'TIME' && !/:(binary|omap|pairs|set|timestamp)$/.test(tag.tag)
  })
}

/** Parses the documents of a YAML or JSON file as kubectl does. Empty documents are left out; faults are among `problems`. */
export function readYaml(text: string): YamlFile {
  const lines = new LineCounter()
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const documents: YamlDocument[] = []
  const problems: YamlProblem[] = []
  try {
    for (const document of parse(text, lines)) {
      const read = readDocument(document, at)
      if (read === undefined) continue
      if ('message' in read) problems.push(read)
      else documents.push(read)
    }
  } catch (error) {
    // Nesting beyond what the parser's stack holds.
    problems.push({ ...at(0), message: ServeError.from(error).message })
  }
  return { documents, problems }
}

function parse(text: string, lineCounter: LineCounter): readonly Document.Parsed[] {
  const parsed = parseAllDocuments(text, {
    version: '1.1',
    customTags: asKubectl,
    uniqueKeys: true,
    prettyErrors: false,
    lineCounter,
    logLevel: 'silent',
  })
  return Array.isArray(parsed) ? parsed : []
}

function readDocument(
  document: Document.Parsed,
  at: (offset: number) => Position,
): YamlDocument | YamlProblem | undefined {
  const [fault] = document.errors
  if (fault !== undefined) return { ...at(fault.pos[0]), message: fault.message }
  const root = document.contents
  if (root === null || (isScalar(root) && root.value === null)) return undefined
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES })
    return { value, positionOf: (path) => at(offsetOf(root, path)) }
  } catch (error) {
    return { ...at(startOf(root) ?? 0), message: ServeError.from(error).message }
  }
}
