import { ServeError } from '@tutti/errors'
import t from 'tap'
import { parseFlags } from '../flags/flags.ts'
import { createLogger } from '../log/log.ts'
import { createSignalSource } from '../testing/manual-signals.ts'
import { PROCESS_FLAGS, toDrainMs, toLogSettings } from './process-flags.ts'
import { reportFailure } from './report-failure.ts'
import { type Executable, logIgnored, runExecutable } from './run-executable.ts'

const FLAGS = { ...PROCESS_FLAGS, name: { type: 'string', description: 'A name.' } } as const

function rig(o: Partial<Executable<typeof FLAGS>> = {}) {
  const signals = createSignalSource()
  const printed = { out: '', err: '', codes: [] as number[] }
  const events: string[] = []
  const environment = {
    env: { OTEL_SERVICE_NAME: 'ours' },
    out: (text: string) => (printed.out += text),
    err: (text: string) => (printed.err += text),
    signals,
    exit: (code: number) => printed.codes.push(code),
  }
  const executable: Executable<typeof FLAGS> = {
    name: 'test',
    version: '1.2.3',
    usage: 'test [FLAGS]',
    flags: FLAGS,
    processFlags: (flags) => flags,
    check: () => {},
    start: async ({ flags, settings, health }) => {
      events.push(`start ${flags.name} for ${settings.serviceName}, ready: ${health.isReady}`)
      return {
        stopAccepting: () => void events.push('stop accepting'),
        drain: async () => void events.push('drain'),
        close: async () => void events.push('close'),
      }
    },
    ...o,
  }
  return { executable, environment, signals, printed, events }
}

await t.test('it starts with what was read, and a signal ends it in order', async (t) => {
  const { executable, environment, signals, printed, events } = rig()
  const argv = ['--name=x', '--log-info=false', '--log-warning=false']
  const ended = runExecutable(executable, argv, environment)
  signals.send('SIGTERM')
  t.equal(await ended, 0)
  t.same(events, ['start x for ours, ready: false', 'stop accepting', 'drain', 'close'])
  t.same(printed.codes, [0])
})

await t.test('help is printed, and nothing starts', async (t) => {
  const { executable, environment, printed, events } = rig()
  t.equal(await runExecutable(executable, ['--help'], environment), 0)
  t.match(printed.out, /^usage: test \[FLAGS\]\n[^]*--name/)
  t.same(events, [])
})

const refuse = (): void => {
  throw new ServeError('FLAG_INVALID', '--name: got none')
}

await t.test('name and version are printed, whatever else is missing', async (t) => {
  const { executable, environment, printed, events } = rig({ check: refuse })
  t.equal(await runExecutable(executable, ['--version'], environment), 0)
  t.equal(printed.out, 'test 1.2.3\n')
  t.same(events, [])
})

await t.test('what is not understood ends before anything starts', async (t) => {
  const cases: [readonly string[], Partial<Executable<typeof FLAGS>>, string][] = [
    [['--nam=x'], {}, 'unknown flag --nam; did you mean --name?'],
    [['x'], {}, "got 'x', want flags only"],
    [[], { check: refuse }, '--name: got none'],
  ]
  for (const [argv, o, text] of cases) {
    const { executable, environment, printed, events } = rig(o)
    const code = await runExecutable(executable, argv, environment).catch((error: unknown) =>
      reportFailure('test', error, environment),
    )
    t.equal(code, 2)
    t.equal(printed.err, `test: ${text}\n`)
    t.same(events, [])
  }
  const { environment, printed } = rig()
  t.equal(reportFailure('test', new Error('boom\n\u001b[2J'), environment), 1)
  t.equal(
    printed.err,
    'test: boom\n\\u001b[2J\nsee https://tutti.dev/docs/errors/#internal\n',
    'no control sequence of the terminal, and where to read on',
  )
})

await t.test('a flag without effect is logged if it is given', (t) => {
  const table = {
    pool: { type: 'int', isIgnored: true, description: 'No effect: no pool.' },
    dir: { type: 'string', repeatable: true, isIgnored: true, description: 'No effect.' },
  } as const
  const lines: string[] = []
  const logger = createLogger({
    name: 'test',
    destination: { write: (line: string) => lines.push(line) },
  })
  logIgnored(table, parseFlags(table, []).values, logger)
  t.same(lines, [])
  logIgnored(table, parseFlags(table, ['--pool=0', '--dir=a', '--dir=b']).values, logger)
  t.match(
    lines.map((line) => JSON.parse(line)),
    [
      { message: 'flag has no effect', flag: '--pool', description: 'No effect: no pool.' },
      { flag: '--dir' },
    ],
  )
  t.end()
})

await t.test('levels and times of the flags', async (t) => {
  const flags = parseFlags(PROCESS_FLAGS, [
    '--exit-timeout-secs=10',
    '--log-verbose=true',
    '--log-info=false',
    '--log-format=ISO8601',
    '--log-file=/tmp/x',
  ]).values
  t.same(toLogSettings(flags), {
    file: '/tmp/x',
    error: true,
    warning: true,
    info: false,
    verboseLevel: 1,
    format: 'ISO8601',
  })
  t.equal(toDrainMs(flags), 9000)
})
