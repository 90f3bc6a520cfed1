import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import * as client from './client/index.ts'
import * as codecs from './index.ts'

const README = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8')

await t.test('what the table of exports names is exported', async (t) => {
  const [, table = ''] = README.split(/^\| export .*$/m)
  const [rows = ''] = table.split('\n\n')
  const names = [...rows.matchAll(/^\| (`.*?) +\|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(\w+)/g)].map(([, name = '']) => name),
  )
  t.ok(names.length > 20, `${names.length} names`)
  const exported = { ...codecs, ...client }
  // Types leave nothing to look for: none of them stands there.
  for (const name of names) t.ok(name in exported, name)
})
