import { resolve } from 'node:path'
import t from 'tap'
import { sections } from '../../site/navigation.mjs'
import { findPages, placeOf } from '../../site/pages.mjs'

const ROOT = resolve(import.meta.dirname, '..', '..')

await t.test('each page of the checkout is in one section of the site', async (test) => {
  const listed = sections(ROOT).flatMap(({ groups }) => groups.flatMap(({ pages }) => pages))
  test.same(listed.toSorted(), findPages(ROOT))
  test.same(
    sections(ROOT).map(({ text }) => text),
    ['Start', 'Concepts', 'How-tos', 'Reference', 'Operations', 'Design'],
  )
})

await t.test('no two pages have one place, whatever the case', async (test) => {
  const places = findPages(ROOT).map((page) => placeOf(page).toLowerCase())
  test.equal(new Set(places).size, places.length)
  test.equal(placeOf('docs/errors.md'), 'errors.md')
  test.equal(placeOf('README.md'), 'index.md')
  test.equal(placeOf('services/cli/README.md'), 'services/cli/index.md')
})
