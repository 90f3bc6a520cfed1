// The page about engines has every engine of the list, with its settings.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'tap'
import { ENGINES } from '../../services/backends/src/descriptors.ts'

const root = resolve(import.meta.dirname, '..', '..')
const page = readFileSync(join(root, 'docs', 'engines.md'), 'utf8')

for (const { backend, title, settings } of ENGINES) {
  await test(`docs/engines.md has ${title} models, and the settings of ${backend}`, async (t) => {
    t.match(page, `\n## ${title} models\n`)
    for (const setting of Object.keys(settings)) {
      t.match(page, new RegExp(`[\`,]${setting}[\`=]`), setting)
    }
  })
}
