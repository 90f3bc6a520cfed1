import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { INLINE_LIMIT_BYTES } from '@tutti/protocol'
import t from 'tap'
import { completeSettings, ENDPOINT_DEFAULTS } from './endpoint-settings.ts'

const README = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8')

await t.test('the table of settings in the README has the defaults', async (t) => {
  const section = README.slice(README.indexOf('## Settings'))
  const rows = [...section.matchAll(/^\| `(\w+)` +\| (\d+) +\| (.+?) +\|$/gm)]
  t.same(
    rows.map(([, name, value]) => [name, Number(value)]),
    Object.entries(ENDPOINT_DEFAULTS),
  )
  for (const [, name, , reason = ''] of rows) t.ok(reason.length > 10, `${name} has a reason`)
})

await t.test('settings that cannot be are refused', async (t) => {
  const cases = [
    { heartbeatMs: 0 },
    { stallMs: 1.5 },
    { maxCalls: Number.NaN },
    { responseBytes: INLINE_LIMIT_BYTES - 1 },
  ]
  for (const given of cases) {
    const [field] = Object.keys(given)
    let error: unknown
    try {
      completeSettings(given)
    } catch (thrown) {
      error = thrown
    }
    t.match(error, { reason: 'SETTING_INVALID', details: { field } })
  }
  t.same(completeSettings(), ENDPOINT_DEFAULTS)
  t.equal(completeSettings({ heartbeatMs: 100 }).heartbeatMs, 100)
})
