import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { INLINE_LIMIT_BYTES } from '@tutti/protocol'
import t from 'tap'
import { completeSettings, ENDPOINT_DEFAULTS } from './endpoint-settings.ts'

const SOURCE = readFileSync(join(import.meta.dirname, 'endpoint-settings.ts'), 'utf8')

await t.test('each setting has a reason where its default is', async (t) => {
  const fields = [...SOURCE.matchAll(/^( +\*\/|  \/\*\* .+ \*\/)?\n  (\w+): /gm)]
  const documented = fields.filter(([, reason]) => reason !== undefined).map(([, , name]) => name)
  t.same(documented, Object.keys(ENDPOINT_DEFAULTS))
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
