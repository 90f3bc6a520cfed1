import { readFile } from 'node:fs/promises'
import { renderFlagTable } from '@tutti/chassis'
import t from 'tap'
import { STEP_FLAGS } from './step-flags.ts'

/** Without the padding that the formatter gives to tables. */
function compact(text: string): string {
  return text.replaceAll(' ', '').replaceAll(/-{2,}/g, '--')
}

await t.test('README.md lists every flag', async (t) => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
  t.ok(compact(readme).includes(compact(renderFlagTable(STEP_FLAGS)).trim()))
})

await t.test('no flag takes a secret', async (t) => {
  for (const name of Object.keys(STEP_FLAGS)) {
    t.notMatch(name, /(password|token|creds|nkey|secret)$/, `${name} names a file`)
  }
})
