import t from 'tap'
import { createManualClock } from '../testing/manual-clock.ts'
import { exceptDetails, limitLog, ofEachModel } from './limit-log.ts'
import { createLogger } from './log.ts'

function scene(o: { readonly level?: 'info' | 'debug' } = {}) {
  const lines: Record<string, unknown>[] = []
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) }
  const clock = createManualClock()
  const log = createLogger({ level: o.level ?? 'info', name: 'test', destination })
  return { clock, lines, log: limitLog(log, { clock, lines: 3, everyMs: 100 }) }
}

await t.test('lines of one message come up to the limit, then one in a while', async (t) => {
  const { clock, lines, log } = scene()
  for (let i = 0; i < 10; i += 1) log.info('replica appeared', { replica: `p${i}` })
  t.same(
    lines.map(({ replica }) => replica),
    ['p0', 'p1', 'p2'],
  )
  clock.advance(99)
  log.info('replica appeared')
  t.equal(lines.length, 3)
  clock.advance(1)
  log.info('replica appeared', { replica: 'later' })
  t.match(lines[3], { replica: 'later', suppressed: 8 }, 'it says how many were left out')
  clock.advance(10_000)
  for (let i = 0; i < 10; i += 1) log.info('replica appeared')
  t.equal(lines.length, 7, 'the bucket is full again, and no fuller')
  t.notOk(lines.some((line, i) => i !== 3 && 'suppressed' in line))
})

await t.test('messages and levels do not take lines from one another', async (t) => {
  const { lines, log } = scene({ level: 'debug' })
  const child = log.child({ self: 'me' })
  for (const level of ['error', 'warn', 'info', 'debug'] as const) {
    for (let i = 0; i < 5; i += 1) (i % 2 === 0 ? log : child)[level](`an ${level} line`)
  }
  t.equal(lines.length, 12, 'children share the bucket of their parent')
  t.match(lines[1], { level: 'error', self: 'me', message: 'an error line' })
  t.ok(log.isDebug)
})

await t.test(
  'lines share a budget by their key, those without one are never left out',
  async (t) => {
    const lines: Record<string, unknown>[] = []
    const destination = { write: (line: string) => lines.push(JSON.parse(line)) }
    const log = limitLog(
      createLogger({ level: 'info', name: 'test', destination }),
      { clock: createManualClock(), lines: 3 },
      (message, { who }) => (typeof who === 'string' ? `${message} ${who}` : undefined),
    )
    for (const who of ['a', 'b', undefined])
      for (let i = 0; i < 5; i += 1) log.info('a call', who === undefined ? {} : { who })
    t.same(
      ['a', 'b', undefined].map((who) => lines.filter((line) => line['who'] === who).length),
      [3, 3, 5],
    )
  },
)

await t.test(
  'details may pass, and lines about one model leave those about others alone',
  async (t) => {
    const lines: Record<string, unknown>[] = []
    const destination = { write: (line: string) => lines.push(JSON.parse(line)) }
    const base = createLogger({ level: 'debug', name: 'test', destination })
    const limit = { clock: createManualClock(), lines: 3 }
    const server = limitLog(base, limit, exceptDetails)
    for (let i = 0; i < 5; i += 1)
      for (const level of ['warn', 'debug'] as const) server[level]('x')
    t.equal(lines.splice(0).length, 8)
    const models = limitLog(base, limit, ofEachModel)
    for (const model of ['a', 'b']) for (let i = 0; i < 5; i += 1) models.info('loaded', { model })
    for (let i = 0; i < 5; i += 1) models.info('loaded')
    t.equal(lines.splice(0).length, 9)
  },
)

await t.test('keys that others make up do not become budgets without end', async (t) => {
  const lines: string[] = []
  const destination = { write: (line: string) => lines.push(line) }
  const base = createLogger({ level: 'info', name: 'test', destination })
  const log = limitLog(base, { clock: createManualClock(), lines: 1 }, ofEachModel)
  for (let i = 0; i < 30_000; i += 1) log.info('loaded', { model: `m${i}` })
  t.equal(lines.length, 10_001)
})

await t.test('what is not logged at all takes nothing', async (t) => {
  const { lines, log } = scene()
  for (let i = 0; i < 5; i += 1) log.debug('a line')
  for (let i = 0; i < 3; i += 1) log.info('a line')
  t.equal(lines.length, 3)
})

await t.test('long texts of others are cut', async (t) => {
  const { lines, log } = scene()
  log.warn('step did not describe itself', { error: 'x'.repeat(1_000_000), replica: 'r' })
  t.equal(lines[0]?.['error'], `${'x'.repeat(1024)}… (1000000 characters)`)
  t.equal(lines[0]?.['replica'], 'r')
})
