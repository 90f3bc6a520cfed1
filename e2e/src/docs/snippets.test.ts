import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { ROOT } from '../serving.ts'
import { LANGUAGES } from './run-snippet.ts'
import { findSnippets, isListed, PAGES, REASONS, type Snippet, UNEXECUTED } from './snippets.ts'

const snippets = PAGES.flatMap(findSnippets)
const nameOf = ({ page, line }: Snippet): string => `${page}:${line}`

await t.test('every block of a page names its language', async (t) => {
  t.ok(snippets.length > 100, `${snippets.length} blocks`)
  t.same(snippets.filter(({ language }) => language === '').map(nameOf), [])
  for (const page of PAGES) {
    const fences = readFileSync(`${ROOT}${page}`, 'utf8').match(/^\s*```/gm) ?? []
    t.equal(fences.length, 2 * findSnippets(page).length, `${page}: all fences begin a line`)
  }
})

await t.test('every block is executed, or listed with a reason', async (t) => {
  const executed = snippets.filter((snippet) => !isListed(snippet))
  t.ok(executed.length > 30, `${executed.length} are executed`)
  const others = executed.filter(({ language }) => !LANGUAGES.has(language))
  t.same(others.map(nameOf), [], 'e2e/src/docs/unexecuted.json lists them')
})

await t.test('the list names blocks that are there, once, and why', async (t) => {
  for (const { page, begins, test, reason } of UNEXECUTED) {
    const name = `${page}: ${begins ?? 'all blocks'}`
    const found = snippets.filter((one) => one.page === page && one.text.startsWith(begins ?? ''))
    t.ok(begins === undefined ? found.length > 0 : found.length === 1, name)
    t.not(test === undefined, reason === undefined, `${name}: a test or a reason`)
    if (reason !== undefined) t.ok(Object.hasOwn(REASONS, reason), `${name}: ${reason}`)
    if (test !== undefined)
      t.ok(executes(test, page, begins), `${test} says that it executes ${name}`)
  }
  const listed = UNEXECUTED.map(({ page, begins }) => `${page} ${begins ?? ''}`)
  t.same(listed, [...new Set(listed)])
  const used = new Set(UNEXECUTED.map(({ reason }) => reason))
  t.same(
    Object.keys(REASONS).filter((reason) => !used.has(reason)),
    [],
    'reasons of no block',
  )
})

/** Whether a test file has the mark of the block, beside the code that executes it; for all blocks, each part of the page's path. */
function executes(test: string, page: string, begins: string | undefined): boolean {
  if (!existsSync(`${ROOT}${test}`)) return false
  const text = readFileSync(`${ROOT}${test}`, 'utf8')
  if (begins !== undefined) return text.includes(`// Executes ${page}: ${begins.trim()}\n`)
  return page.split('/').every((part) => text.includes(part))
}
