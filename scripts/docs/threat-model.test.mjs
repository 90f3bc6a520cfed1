import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'

const ROOT = resolve(import.meta.dirname, '..', '..')
const PAGE = readFileSync(join(ROOT, 'docs', 'threat-model.md'), 'utf8')
/** The last cell of a row: the file of a test, and its title or the end of it. */
const TEST = /\| `([^`]+\.(?:test|nightly|soak|e2e)\.m?[jt]s)`: (.+?) *\|$/

await t.test('every promise names a test that exists', async (test) => {
  const rows = PAGE.split('\n').filter((line) => /^\| (?!promise|-)/.test(line))
  test.ok(rows.length > 20, `${rows.length} rows`)
  for (const row of rows) {
    const [, file, title] = TEST.exec(row) ?? []
    test.ok(file !== undefined, `names a test: ${row}`)
    if (file === undefined) continue
    const path = join(ROOT, file)
    test.ok(existsSync(path), `is there: ${file}`)
    // A title may be broken over lines, and begin with a variable.
    if (existsSync(path))
      test.ok(readFileSync(path, 'utf8').includes(title), `${file} has "${title}"`)
  }
})
