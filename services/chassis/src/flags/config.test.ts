import { ServeError } from '@tutti/errors'
import t from 'tap'
import { z } from 'zod'
import { loadConfig, renderSettingTable } from './config.ts'

const Settings = z.object({
  logLevel: z
    .enum(['error', 'info'])
    .default('info')
    .meta({ env: 'TUTTI_LOG_LEVEL', description: 'least severe line | all above it' }),
  graceMs: z.coerce
    .number()
    .int()
    .min(0)
    .default(30_000)
    .meta({ env: 'TUTTI_GRACE_MS', description: 'milliseconds to drain' }),
  token: z.string().optional().meta({ env: 'TUTTI_TOKEN', description: 'bearer token' }),
  url: z.string().meta({ env: 'TUTTI_URL', description: 'where it is' }),
})

await t.test('values are read by their variables, absent ones get their defaults', async (t) => {
  const config = loadConfig(Settings, { TUTTI_URL: 'nats://x', TUTTI_GRACE_MS: '5', OTHER: '1' })
  t.same(config, { logLevel: 'info', graceMs: 5, url: 'nats://x' })
  t.ok(Object.isFrozen(config))
})

await t.test('an empty variable counts as absent', async (t) => {
  const config = loadConfig(Settings, { TUTTI_URL: 'x', TUTTI_LOG_LEVEL: '', TUTTI_TOKEN: '' })
  t.equal(config.logLevel, 'info')
  t.equal(config.token, undefined)
})

await t.test('all refused variables are named in one SETTING_INVALID', async (t) => {
  try {
    loadConfig(Settings, { TUTTI_LOG_LEVEL: 'loud', TUTTI_GRACE_MS: 'soon' })
    t.fail('was accepted')
  } catch (error) {
    t.ok(error instanceof ServeError)
    t.match(error, {
      reason: 'SETTING_INVALID',
      message: /TUTTI_LOG_LEVEL/,
      details: { field: 'TUTTI_LOG_LEVEL, TUTTI_GRACE_MS, TUTTI_URL' },
    })
  }
})

await t.test('the table for documentation comes from the schema', async (t) => {
  t.equal(
    renderSettingTable(Settings),
    [
      '| variable          | default  | meaning                           |',
      '| ----------------- | -------- | --------------------------------- |',
      '| `TUTTI_LOG_LEVEL` | info     | least severe line \\| all above it |',
      '| `TUTTI_GRACE_MS`  | 30000    | milliseconds to drain             |',
      '| `TUTTI_TOKEN`     | -        | bearer token                      |',
      '| `TUTTI_URL`       | required | where it is                       |',
    ].join('\n'),
  )
})

await t.test('a setting without variable or description is a bug', async (t) => {
  t.throws(() => renderSettingTable(z.object({ a: z.string() })), { message: /^bug: / })
  t.throws(() => renderSettingTable(z.object({ a: z.string().meta({ env: 'A' }) })), {
    message: 'bug: setting A has no description',
  })
})
