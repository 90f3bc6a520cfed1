import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import { SecretText } from '../files/secret.ts'
import { startProcess } from '../testing/start-process.ts'
import { createLogger, type LogLevel, silentLogger } from './log.ts'
import { settingsOfLevel } from './log-settings.ts'

function capture(level: LogLevel) {
  const lines: string[] = []
  const logger = createLogger({
    level,
    name: 'tutti-step',
    destination: { write: (line) => lines.push(line) },
  })
  return { logger, parsed: () => lines.map((line): unknown => JSON.parse(line)), lines }
}

await t.test(
  'each line is one JSON object with level, time, service, fields and message',
  async (t) => {
    const { logger, parsed, lines } = capture('info')
    logger.info('step finished', { step: 'detect', durationMs: 1.5 })
    t.match(parsed(), [
      {
        level: 'info',
        time: /^\d{4}-\d\d-\d\dT/,
        service: 'tutti-step',
        step: 'detect',
        durationMs: 1.5,
        message: 'step finished',
      },
    ])
    t.ok(lines[0]?.endsWith('}\n'))
  },
)

await t.test('no text ends a line, whatever a reader takes for an end', async (t) => {
  const settings = settingsOfLevel('info')
  for (const format of ['json', 'default', 'ISO8601'] as const) {
    const lines: string[] = []
    const destination = { write: (line: string) => lines.push(line) }
    const logger = createLogger({ name: 'tutti', settings: { ...settings, format }, destination })
    const model = 'a\nb\rc\u0085d\u2028e\u2029f'
    logger.info('refused', { model })
    const [line = ''] = lines
    t.notMatch(line.slice(0, -1), /[\n\r\u0085\u2028\u2029]/, format)
    const fields: unknown = JSON.parse(line.slice(line.indexOf('{')))
    t.match(fields, { model }, format)
  }
})

await t.test('lines below the level are left out', async (t) => {
  for (const [level, count] of [
    ['error', 1],
    ['warn', 2],
    ['info', 3],
    ['debug', 4],
  ] as const) {
    const { logger, lines } = capture(level)
    logger.error('a')
    logger.warn('b')
    logger.info('c')
    logger.debug('d')
    t.equal(lines.length, count, level)
    t.equal(logger.isDebug, level === 'debug')
  }
})

await t.test('a child carries its fields on every line', async (t) => {
  const { logger, parsed } = capture('debug')
  logger.child({ model: 'ocr' }).child({ version: 1 }).debug('loaded', { ms: 2 })
  t.match(parsed(), [{ model: 'ocr', version: 1, ms: 2, message: 'loaded' }])
})

await t.test('a ServeError is told with code, reason, details and its causes', async (t) => {
  const { logger, parsed } = capture('info')
  const error = new ServeError('MODEL_LOAD_FAILED', 'cannot load', {
    details: { model: 'ocr' },
    cause: new Error('no file', { cause: 'ENOENT' }),
  })
  logger.error('load failed', { error })
  t.match(parsed(), [
    {
      error: {
        code: 'INTERNAL',
        reason: 'MODEL_LOAD_FAILED',
        message: 'cannot load',
        details: { model: 'ocr' },
        cause: { message: 'no file', stack: /no file/, cause: { message: 'ENOENT' } },
      },
    },
  ])
})

await t.test('a cycle of causes ends', async (t) => {
  const { logger, lines } = capture('info')
  const error = new Error('a')
  error.cause = error
  logger.error('failed', { error })
  t.equal(lines.length, 1)
})

await t.test('a secret is never printed, wherever it stands', async (t) => {
  const { logger, lines } = capture('info')
  const token = new SecretText('hunter2')
  logger.child({ token }).info('connected', { token, nested: { token }, text: String(token) })
  t.notMatch(lines.join(''), 'hunter2')
  t.match(lines.join(''), '[redacted]')
  t.notMatch(inspect({ token }), 'hunter2')
  t.equal(token.reveal(), 'hunter2')
})

await t.test('a field does not hide what the line says itself', async (t) => {
  const { logger, parsed } = capture('info')
  logger.info('refused', { message: 'too large', level: 'high' })
  t.match(parsed(), [{ level: 'info', message: 'refused', message_: 'too large', level_: 'high' }])
})

await t.test('values that JSON does not know do not break a line', async (t) => {
  const { logger, parsed } = capture('info')
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  logger.info('odd', { big: 5n, cycle, none: undefined })
  t.match(parsed(), [{ message: 'odd', big: 5 }])
})

await t.test('the silent logger takes everything', async (t) => {
  silentLogger.child({ a: 1 }).error('x')
  silentLogger.warn('x')
  silentLogger.info('x')
  silentLogger.debug('x')
  t.equal(silentLogger.isDebug, false)
})

await t.test('lines are out in order when a process ends right behind them', async (t) => {
  const script = `
    import { createLogger } from ${JSON.stringify(new URL('./log.ts', import.meta.url).href)}
    const log = createLogger({ level: 'info', name: 'brief' })
    for (let i = 0; i < 100; i++) log.info('line', { i })
    process.kill(process.pid, 'SIGKILL')
  `
  const started = await startProcess(process.execPath, ['--input-type=module', '--eval', script])
  t.teardown(() => started.stop('SIGKILL'))
  await started.exited
  const numbers = started.lines.map((line): unknown => JSON.parse(line).i)
  t.same(
    numbers,
    Array.from({ length: 100 }, (_, i) => i),
  )
})

await t.test('a process goes on while its log cannot be written', async (t) => {
  const script = `
    import { createLogger } from ${JSON.stringify(new URL('./log.ts', import.meta.url).href)}
    const log = createLogger({ level: 'info', name: 'brief' })
    for (let i = 0; i < 10_000; i++) log.info('line', { text: 'x'.repeat(1000) })
    setTimeout(() => {
      const { external, heapUsed } = process.memoryUsage()
      process.stderr.write('goes on, ' + (external + heapUsed < 100_000_000 ? 'small' : 'large'))
    }, 1)
  `
  // As a full disk; and a reader that has gone.
  for (const output of ['>/dev/full', '| true']) {
    const shell = `"$0" --input-type=module --eval "$1" ${output}`
    const started = await startProcess('sh', ['-c', shell, process.execPath, script])
    t.teardown(() => started.stop('SIGKILL'))
    t.equal((await started.exited).code, 0, output)
    t.same(started.lines, ['goes on, small'], output)
  }
})

await t.test(
  "lines in tritonserver's forms, and what is written, change while it is used",
  async (t) => {
    const lines: string[] = []
    const settings = settingsOfLevel('info')
    const destination = { write: (line: string) => lines.push(line) }
    const log = createLogger({ name: 'tutti', settings, destination }).child({ model: 'm' })
    const debug = log.child({})
    debug.debug('not yet')
    settings.verboseLevel = 1
    settings.info = false
    settings.format = 'default'
    t.ok(debug.isDebug)
    log.info('not any more')
    debug.debug('a "word"', { level: 1 })
    settings.format = 'ISO8601'
    log.error('bad', { error: new Error('why') })
    t.equal(lines.length, 2)
    const place = `${process.pid} tutti:0\\]`
    t.match(
      lines[0],
      new RegExp(
        `^I\\d{4} \\d\\d:\\d\\d:\\d\\d\\.\\d{6} ${place} "a \\\\"word\\\\"" {"model":"m","level_":1}\n$`,
      ),
    )
    t.match(
      lines[1],
      new RegExp(
        `^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ E ${place} "bad" {"model":"m","error":.*why.*}\n$`,
      ),
    )
  },
)

await t.test('a file is appended to', async (t) => {
  const file = join(t.testdir({ log: 'before\n' }), 'log')
  createLogger({ name: 'a', settings: { ...settingsOfLevel('info'), file } }).info('said')
  t.match(await readFile(file, 'utf8'), /^before\n{.*"message":"said"}\n$/)
  const nowhere = { ...settingsOfLevel('info'), file: join(file, 'x') }
  t.throws(() => createLogger({ name: 'a', settings: nowhere }), { code: 'ENOTDIR' })
})
