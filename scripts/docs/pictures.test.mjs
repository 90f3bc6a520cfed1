import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, matchesGlob, resolve } from 'node:path'
import t from 'tap'

const ROOT = resolve(import.meta.dirname, '..', '..')
const PICTURES = globSync(
  ['docs/**/*', 'examples/**/*', 'model_repository/.samples/*', 'services/*/src/**/*'],
  { cwd: ROOT },
).filter((path) => /\.(png|jpe?g|gif|svg|webp)$/.test(path))

/** The rows of the table: patterns of pictures, and the scripts that make them. */
const rows = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8')
  .split('\n| pictures ')[1]
  .split('\n\n')[0]
  .split('\n')
  .slice(2)
  .map((row) =>
    row.split(' | ').map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, one]) => one)),
  )

await t.test('each picture has a script that makes it, in CONTRIBUTING.md', async (test) => {
  test.ok(PICTURES.length > 40, `${PICTURES.length} pictures`)
  for (const picture of PICTURES) {
    const found = rows.filter(([patterns]) => patterns.some((one) => matchesGlob(picture, one)))
    test.equal(found.length, 1, picture)
  }
})

await t.test('each pattern has pictures, and each script is there', async (test) => {
  for (const [patterns, scripts] of rows) {
    for (const pattern of patterns)
      test.ok(
        PICTURES.some((one) => matchesGlob(one, pattern)),
        pattern,
      )
    for (const script of scripts)
      test.ok(script.startsWith('npm run ') || existsSync(join(ROOT, script)), script)
  }
})

await t.test('each picture of docs is shown by a page', async (test) => {
  const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT })
    .map((page) => readFileSync(join(ROOT, page), 'utf8'))
    .join('\n')
  for (const picture of PICTURES.filter((path) => path.startsWith('docs/')))
    test.ok(pages.includes(`](${picture})`) || pages.includes(`](${picture.slice(5)})`), picture)
})
