import * as fc from 'fast-check'
import t from 'tap'
import { parseFlags } from './flags.ts'
import { FORMAT_FLAG, readResultFormat } from './result-format.ts'

const FLAGS = {
  name: { type: 'string', default: '', description: 'x' },
  quick: { type: 'bool', default: false, description: 'x' },
  format: { ...FORMAT_FLAG, aliases: ['output', 'o'] },
} as const

await t.test('lines that are wrong elsewhere still say how errors are printed', (t) => {
  const cases = [
    ['--nonsense --format=json', 'json'],
    ['--format JSON --port=x', 'json'],
    ['-o json --format', 'text'],
    ['-o json', 'json'],
    ['--output=json --format=text', 'text'],
    ['--format=pbtxt', 'text'],
    ['--name -- --format=json', 'text'],
    ['', 'text'],
  ] as const
  for (const [line, wanted] of cases)
    t.equal(readResultFormat(FLAGS, line.split(' ')), wanted, line)
  t.equal(readResultFormat({}, ['--format=json']), 'text', 'a command without the flag')
  t.end()
})

await t.test('lines that are right say what the command reads', (t) => {
  const name = fc.constantFrom('--format', '--output', '-o')
  const value = fc.constantFrom('json', 'text', 'Json')
  const word = fc.constantFrom(
    'a',
    'json',
    '--quick',
    '--quick=false',
    '--name=json',
    '--name=--format',
    '--',
  )
  const part = fc.oneof(
    word.map((one) => [one]),
    fc.tuple(fc.constant('--name'), fc.constantFrom('json', '-', 'a=b')),
    fc.tuple(name, value),
    fc.tuple(name, value).map(([flag, text]) => [`${flag}=${text}`]),
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
      const argv = parts.flat()
      t.equal(readResultFormat(FLAGS, argv), parseFlags(FLAGS, argv).values.format)
    }),
  )
  t.end()
})
