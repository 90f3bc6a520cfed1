import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildFlagTables, replaceFlagTable } from './flag-tables.ts'

const read = (path: string) => readFileSync(join(import.meta.dirname, '../../..', path), 'utf8')

await t.test('the READMEs have the flags of every command; npm run gen writes them', async (t) => {
  const texts = await buildFlagTables(read)
  t.same([...texts.keys()].toSorted(), [
    'services/cli/README.md',
    'services/kubectl/README.md',
    'services/router/README.md',
    'services/step/README.md',
  ])
  for (const [path, text] of texts) t.equal(text, read(path), `${path}: npm run gen mends it`)
})

await t.test(
  'the table below the heading of a command is written anew, and no other',
  async (t) => {
    const flags = { a: { type: 'string', description: 'costs $& | more' } } as const
    const old = '| flag | x |\n| --- | --- |\n| `--b` | y |\n'
    const text = (table: string) =>
      `# x\n\n## \`tutti abc\`\n\n${old}\n## Flags of \`tutti ab X\`\n\nText.\n\n${table}\n${old}`
    const written = replaceFlagTable(text(old), 'tutti ab', flags)
    t.match(written, '| `-a` | string | -       |      | costs $& \\| more |\n')
    t.equal(written.split(old).length, 3)
    t.equal(replaceFlagTable(written, 'tutti ab', flags), written)
    t.throws(() => replaceFlagTable(text(''), 'tutti none', flags), { message: /`tutti none`/ })
    t.throws(() => replaceFlagTable('## `tutti ab`\n', 'tutti ab', flags), { message: /table/ })
  },
)
