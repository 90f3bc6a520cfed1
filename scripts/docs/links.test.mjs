import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import t from 'tap'
import { helpAddress, REASONS } from '../../services/errors/dist/index.js'
import { anchorOf, findPages, pageOfLink } from '../../site/pages.mjs'

const ROOT = resolve(import.meta.dirname, '..', '..')
const PAGES = new Set(findPages(ROOT))

/** Reads the prose of a page: what a program prints, and what stands in the spans of code, is no link, whatever it looks like. */
function proseOf(page) {
  const text = readFileSync(join(ROOT, page), 'utf8')
  return text
    .replace(/^```[^]*?^```$/gm, '')
    .replace(/`[^`\n]+`/g, (span) => span.replace(/[[\]()#]/g, ' '))
}

function linksOf(page) {
  const prose = proseOf(page)
  const found = [...prose.matchAll(/\]\(([^)\s]+)\)/g), ...prose.matchAll(/^\[[^\]]+\]: (\S+)$/gm)]
  return found.map(([, link]) => link).filter((link) => !/^(https?|mailto):/.test(link))
}

/** The anchors of a page as GitHub and the site make them: of equal headings the second ends in -1. */
function anchorsOf(page) {
  const text = readFileSync(join(ROOT, page), 'utf8').replace(/^```[^]*?^```$/gm, '')
  const counts = new Map()
  return new Set(
    [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) => {
      const anchor = anchorOf(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, ''))
      const count = counts.get(anchor) ?? 0
      counts.set(anchor, count + 1)
      return count === 0 ? anchor : `${anchor}-${count}`
    }),
  )
}

await t.test(
  'the links of all pages lead somewhere, to the heading that they name',
  async (test) => {
    test.ok(PAGES.size > 90, `${PAGES.size} pages`)
    for (const page of PAGES) {
      for (const link of linksOf(page)) {
        const found = link.startsWith('#') ? { page, anchor: link } : pageOfLink(page, link, PAGES)
        if (found === undefined) {
          const file = join(ROOT, dirname(page), decodeURI(link).replace(/#.*/, ''))
          test.ok(existsSync(file), `${page}: ${link}`)
        } else if (found.anchor !== '') {
          test.ok(anchorsOf(found.page).has(found.anchor.slice(1)), `${page}: ${link}`)
        }
      }
    }
  },
)

await t.test(
  'the page of errors has an anchor for each reason, which its address names',
  async (test) => {
    const anchors = anchorsOf('docs/errors.md')
    for (const reason of Object.keys(REASONS)) {
      test.ok(anchors.has(new URL(helpAddress(reason)).hash.slice(1)), reason)
    }
  },
)
