import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { describeFlags, renderFlagTable, renderHelp } from './flag-help.ts'
import type { FlagTable } from './flag-spec.ts'
import { parseFlags } from './flags.ts'

const FLAGS = {
  'model-repository': {
    type: 'string',
    repeatable: true,
    aliases: ['model-store'],
    description: 'folder of models',
  },
  file: { type: 'string', aliases: ['f'], description: 'manifest' },
  id: { type: 'string', default: 'triton', description: 'server id' },
  'http-port': { type: 'int', default: 8000, min: 0, max: 65_535, description: 'port' },
  'exit-timeout-secs': { type: 'int', default: 30, min: 0, unit: 's', description: 'grace' },
  nice: { type: 'int', max: 19, description: 'priority' },
  offset: { type: 'int', description: 'any whole number' },
  'strict-readiness': { type: 'bool', default: true, description: 'all models' },
  verbose: { type: 'bool', description: 'more' },
  'model-control-mode': {
    type: 'enum',
    values: ['none', 'poll', 'explicit'],
    default: 'none',
    description: 'who loads',
  },
  suffix: { type: 'string', repeatable: true, default: '.onnx', description: 'of files' },
} as const satisfies FlagTable

await t.test('absent flags have their defaults', async (t) => {
  const { values, help } = parseFlags(FLAGS, [])
  t.same(values, {
    'model-repository': [],
    file: undefined,
    id: 'triton',
    'http-port': 8000,
    'exit-timeout-secs': 30,
    nice: undefined,
    offset: undefined,
    'strict-readiness': true,
    verbose: undefined,
    'model-control-mode': 'none',
    suffix: ['.onnx'],
  })
  t.equal(help, false)
})

await t.test('flags are read however they are written', async (t) => {
  const cases: readonly [string[], object][] = [
    [['--http-port=1'], { 'http-port': 1 }],
    [['--http-port', '1'], { 'http-port': 1 }],
    [['--offset', '-3'], { offset: -3 }],
    [['--offset=+3'], { offset: 3 }],
    [['--id='], { id: '' }],
    [['--id=a=b'], { id: 'a=b' }],
    [['--id=--x'], { id: '--x' }],
    [['-f', 'e.yaml'], { file: 'e.yaml' }],
    [['-f=e.yaml'], { file: 'e.yaml' }],
    [['--verbose'], { verbose: true }],
    [['--verbose=FALSE'], { verbose: false }],
    [['--strict-readiness', 'off'], { 'strict-readiness': false }],
    [['--strict-readiness=0'], { 'strict-readiness': false }],
    [['--model-control-mode=poll'], { 'model-control-mode': 'poll' }],
    [['--model-control-mode=POLL'], { 'model-control-mode': 'poll' }],
    [['--model-repository=a', '--model-store', 'b'], { 'model-repository': ['a', 'b'] }],
    [['--suffix=.pt'], { suffix: ['.pt'] }],
    [['--http-port=1', '--http-port=2'], { 'http-port': 2 }],
  ]
  for (const [argv, want] of cases) t.match(parseFlags(FLAGS, argv).values, want, argv.join(' '))
})

await t.test('what is no flag is kept in order, all of it after two dashes', async (t) => {
  const parsed = parseFlags(FLAGS, ['serve', '--verbose', '-', 'x', '--', '--verbose=no', '--help'])
  t.same(parsed.positionals, ['serve', '-', 'x', '--verbose=no', '--help'])
  t.equal(parsed.help, false)
})

await t.test('help is asked for by --help and -h, whatever else stands there', async (t) => {
  t.equal(parseFlags(FLAGS, ['--nonsense', '--help']).help, true)
  t.equal(parseFlags(FLAGS, ['-h']).help, true)
})

await t.test('refused flags carry FLAG_INVALID, their name and what was wanted', async (t) => {
  const cases: readonly [string[], string, string][] = [
    [
      ['--model-repo=x'],
      '--model-repo',
      'unknown flag --model-repo; did you mean --model-repository?',
    ],
    [['--htpp-port=1'], '--htpp-port', 'unknown flag --htpp-port; did you mean --http-port?'],
    [['--zzzzzzzzzz'], '--zzzzzzzzzz', 'unknown flag --zzzzzzzzzz'],
    [['-x'], '-x', 'unknown flag -x; did you mean -f?'],
    [['--http-port'], '--http-port', 'flag --http-port has no value, want --http-port=<int>'],
    [['--id', '--verbose'], '--id', 'flag --id has no value, want --id=<string>'],
    [
      ['--http-port=70000'],
      '--http-port',
      'flag --http-port: "70000", want a whole number from 0 to 65535',
    ],
    [
      ['--http-port=1.5'],
      '--http-port',
      'flag --http-port: "1.5", want a whole number from 0 to 65535',
    ],
    [['--http-port='], '--http-port', 'flag --http-port: "", want a whole number from 0 to 65535'],
    [['--verbose=maybe'], '--verbose', 'flag --verbose: "maybe", want true or false'],
    [
      ['--model-control-mode=all'],
      '--model-control-mode',
      'flag --model-control-mode: "all", want one of none, poll, explicit',
    ],
    [['--__proto__=1'], '--__proto__', 'unknown flag --__proto__'],
  ]
  for (const [argv, field, message] of cases) {
    t.throws(
      () => parseFlags(FLAGS, argv),
      { reason: 'FLAG_INVALID', code: 'INVALID_ARGUMENT', message, details: { field } },
      argv.join(' '),
    )
  }
})

await t.test('any words at all are read, or refused with FLAG_INVALID', async (t) => {
  const name = fc.constantFrom(...Object.keys(FLAGS), 'f', 'nope')
  const word = fc.oneof(
    fc.string(),
    name.map((text) => `--${text}`),
    fc.tuple(name, fc.string()).map(([text, value]) => `--${text}=${value}`),
    fc.constantFrom('true', 'off', '7', '-1', '--', '-f'),
  )
  fc.assert(
    fc.property(fc.array(word, { maxLength: 8 }), (argv) => {
      try {
        const { values } = parseFlags(FLAGS, argv)
        const port = values['http-port']
        return Number.isInteger(port) && port >= 0 && port <= 65_535
      } catch (error) {
        return error instanceof ServeError && error.reason === 'FLAG_INVALID'
      }
    }),
  )
  t.pass()
})

await t.test('a text value comes through unchanged', async (t) => {
  fc.assert(
    fc.property(fc.string(), (text) => parseFlags(FLAGS, [`--id=${text}`]).values.id === text),
  )
  t.pass()
})

await t.test('help and table come from the same data', async (t) => {
  t.same(describeFlags(FLAGS).slice(0, 5), [
    {
      name: '--model-repository, --model-store',
      type: 'string, repeatable',
      default: '-',
      unit: '',
      description: 'folder of models',
    },
    { name: '--file, -f', type: 'string', default: '-', unit: '', description: 'manifest' },
    { name: '--id', type: 'string', default: 'triton', unit: '', description: 'server id' },
    {
      name: '--http-port',
      type: 'int, 0 to 65535',
      default: '8000',
      unit: '',
      description: 'port',
    },
    {
      name: '--exit-timeout-secs',
      type: 'int, at least 0',
      default: '30',
      unit: 's',
      description: 'grace',
    },
  ])
  t.same(
    describeFlags(FLAGS)
      .map((row) => row.type)
      .slice(5, 10),
    ['int, at most 19', 'int', 'boolean', 'boolean', 'none, poll, explicit'],
  )
  const help = renderHelp({ usage: 'tutti serve [flags]', flags: FLAGS })
  t.match(help, /^usage: tutti serve \[flags\]\n\n {2}--model-repository, --model-store {2}\(/)
  t.match(help, '  --exit-timeout-secs  (int, at least 0, default 30 s)\n      grace\n')
  t.match(renderFlagTable(FLAGS), /^\| `--id` +\| string +\| triton +\| +\| server id +\|$/m)
})

await t.test('help names the unit of a flag without default', async (t) => {
  const flags = { 'limit-bytes': { type: 'int', unit: 'bytes', description: 'most' } } as const
  t.match(renderHelp({ usage: 'x', flags }), '--limit-bytes  (int, in bytes)')
})
