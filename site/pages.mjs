import { globSync, readFileSync } from 'node:fs'
import { join, matchesGlob, posix } from 'node:path'

/** Patterns of files that are no pages of the site: generated lists, and notes within the sources of tests. */
export const LEFT_OUT = [
  '**/{node_modules,dist}/**',
  '{out,site}/**',
  'model_repository/.*/**',
  'images/licences.md',
]

/** The Markdown files of a checkout that are pages, sorted, by path from its root. */
export function findPages(root) {
  return globSync('**/*.md', {
    cwd: root,
    // Not into these folders at all: they are large.
    exclude: (path) => /(^|\/)(node_modules|\.[a-z]+)$/.test(path),
  })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => !LEFT_OUT.some((pattern) => matchesGlob(path, pattern)))
    .toSorted()
}

/** The place of a page in the site: README.md is that of its folder, docs is the root, and what lies beside README.md is in `project`. */
export function placeOf(page) {
  return page
    .replace(/^(?!README)[^/]+$/, (name) => `project/${name.toLowerCase()}`)
    .replace(/(^|\/)README\.md$/, '$1index.md')
    .replace(/^docs\/(?!index\.md)/, '')
}

/**
 * The page that a link of a page leads to; undefined if it is another file, or of another host.
 *
 * @param {ReadonlySet<string>} pages - as of `findPages`.
 */
export function pageOfLink(page, link, pages) {
  const [path, anchor = ''] = link.split(/(?=#)/, 2)
  const joined = posix.join(posix.dirname(page), decodeURI(path)).replace(/\/$/, '')
  const found = [joined, posix.join(joined, 'README.md')].find((one) => pages.has(one))
  return found === undefined ? undefined : { page: found, anchor }
}

/** The anchor of a heading's text, as GitHub makes it. A second heading of the same text gets `-1` from the caller. */
export function anchorOf(text) {
  return text
    .toLowerCase()
    .trim()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
    .replaceAll(' ', '-')
}

/** The text of the first heading of a page, without marks. */
export function titleOf(root, page) {
  const [, title = page] = /^# (.+)$/m.exec(readFileSync(join(root, page), 'utf8')) ?? []
  return title.replaceAll('`', '')
}
