import { globSync, readFileSync } from 'node:fs'
import { ROOT } from '../serving.ts'

/** A fenced block of a page. */
export interface Snippet {
  /** Path from the root of the checkout. */
  readonly page: string
  /** Line of its first fence, from 1. */
  readonly line: number
  /** As the fence names it; '' if it names none. */
  readonly language: string
  /** Its lines, each with its end. */
  readonly text: string
}

/** A block that the run of the pages leaves out: another test executes it, or none does for a reason of `unexecuted.json`. */
export interface Unexecuted {
  readonly page: string
  /** How the block begins; it is the only one of its page that does. Absent: all blocks of the page. */
  readonly begins?: string
  readonly test?: string
  readonly reason?: string
}

/** The Markdown files of the checkout. */
export const PAGES: readonly string[] = globSync('**/*.md', {
  cwd: ROOT,
  exclude: (path) => /(^|\/)(node_modules|dist|out|\.[^/]+)$/.test(path),
}).toSorted()

/** The blocks that no test executes, and what the reasons in that list mean. */
export const { reasons: REASONS, blocks: UNEXECUTED } = readList()

function readList() {
  const text = readFileSync(`${ROOT}e2e/src/docs/unexecuted.json`, 'utf8')
  const list: {
    readonly reasons: Readonly<Record<string, string>>
    readonly blocks: readonly Unexecuted[]
  } = JSON.parse(text)
  return list
}

/** The blocks of a page, in its order. */
export function findSnippets(page: string): readonly Snippet[] {
  const text = readFileSync(`${ROOT}${page}`, 'utf8')
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(
    ({ 1: language = '', 2: body = '', index }) => ({
      page,
      line: text.slice(0, index).split('\n').length,
      language,
      text: body,
    }),
  )
}

export function isListed({ page, text }: Snippet): boolean {
  return UNEXECUTED.some((entry) => entry.page === page && text.startsWith(entry.begins ?? ''))
}
