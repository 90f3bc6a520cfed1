import { cp, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDescriptionJson } from '@tutti/api'
import { parseFlags } from '@tutti/chassis'
import * as fc from 'fast-check'
import t from 'tap'
import { startTestStep } from '../testing/start-test-step.ts'
import { readModelDirectories } from './model-directories.ts'
import { stepExecutable } from './step-executable.ts'
import { STEP_FLAGS } from './step-flags.ts'

const BASIC = join(import.meta.dirname, '../../../../model_repository/.variants/fixtures/basic')
const row = Array.from({ length: 16 }, (_, i) => i)
const request = { inputs: [{ name: 'X', datatype: 'FP32', shape: [1, 16], data: row }] }

async function infer(port: number, model: string): Promise<readonly [number, unknown]> {
  const answer = await fetch(`http://127.0.0.1:${port}/v2/models/${model}/infer`, {
    method: 'POST',
    body: JSON.stringify(request),
  })
  const body = JSON.parse(await answer.text())
  return [answer.status, body.outputs?.[0].data ?? body.error]
}

const check = (...argv: string[]): void =>
  stepExecutable.check(parseFlags(STEP_FLAGS, ['--nats=nats://a:1', ...argv]).values)

await t.test('NAME=DIR is read at its first =', (t) => {
  t.same(readModelDirectories(['a:b.v2=/models/model', 'm=x=y']), [
    { name: 'a:b.v2', path: '/models/model' },
    { name: 'm', path: 'x=y' },
  ])
  const cases: readonly (readonly [readonly string[], string])[] = [
    [['x'], '--model-directory: "x", want NAME=DIR'],
    [['=x'], '--model-directory: "=x", want NAME=DIR'],
    [['x='], '--model-directory: "x=", want NAME=DIR'],
    [
      ['a/b=x'],
      "--model-directory: invalid model name 'a/b', model name must not contain path traversal characters",
    ],
    [['.a=x'], "--model-directory: invalid model name '.a': it must not begin with a dot"],
    [['a=x', 'a=y'], '--model-directory: "a" came twice, want a name once'],
  ]
  for (const [given, message] of cases) {
    const wanted = { reason: 'FLAG_INVALID', message, details: { field: '--model-directory' } }
    t.throws(() => readModelDirectories(given), wanted)
  }
  t.end()
})

await t.test('any text gives a directory or a refusal', (t) => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        const [{ name, path } = { name: '', path: '' }] = readModelDirectories([text])
        return `${name}=${path}` === text && name !== '' && path !== '' && !name.includes('/')
      } catch (error) {
        return error instanceof Error && error.message.startsWith('--model-directory: ')
      }
    }),
  )
  t.end()
})

await t.test('a directory stands in for a repository on the command line', (t) => {
  check('--model-directory=a=/a')
  t.throws(() => check(), { message: /^--model-repository: got none/ })
  t.throws(() => check('--model-directory=a'), { message: /want NAME=DIR/ })
  t.end()
})

await t.test('a directory is served under the name that it is given', async (t) => {
  const directory = join(t.testdir(), 'model')
  await cp(join(BASIC, 'add_one_batch'), directory, { recursive: true })
  const named = `--model-directory=add_one_batch=${directory}`
  const alone = await startTestStep(t, [named])
  const port = Number(alone.ready.httpPort)
  t.same(await infer(port, 'add_one_batch'), [200, row.map((x) => x + 1)])
  const [[name, version, revision] = []] = alone.member.options.revisions()
  t.same([name, version], ['add_one_batch', 1])
  const other = await startTestStep(t, [`--model-repository=${BASIC}`, '--model=add_one_batch'])
  t.same(other.member.options.revisions(), [[name, version, revision]], 'the place does not count')
  const beside = await startTestStep(t, [named, `--model-repository=${BASIC}`, '--model=add_one'])
  t.same(
    beside.member.options.revisions().map(([model]) => model),
    ['add_one'],
    'not chosen',
  )
})

await t.test('a name of the config that is another is refused as in Triton', async (t) => {
  const folder = t.testdir({ x: { 1: {} } })
  const argv = [
    `--model-directory=other=${join(BASIC, 'add_one_batch')}`,
    `--model-directory=gone=${join(folder, 'gone')}`,
    `--model-directory=add_one=${join(BASIC, 'add_one')}`,
    `--model-repository=${BASIC}`,
    ...['other', 'gone', 'add_one', 'add_one_batch'].map((name) => `--model=${name}`),
  ]
  const { ready, member } = await startTestStep(t, argv)
  const { models } = parseDescriptionJson(member.options.describe())
  const reason = (name: string): string => models.find((m) => m.name === name)?.reason ?? ''
  t.match(reason('other'), "unexpected directory name 'other' for model 'add_one_batch'")
  t.match(reason('gone'), /^cannot read model 'gone': ENOENT/)
  t.match(reason('add_one'), 'model appears in two or more repositories')
  t.equal((await infer(Number(ready.httpPort), 'add_one_batch'))[0], 200, 'the others serve')
})

await t.test('without a name, or without a config.pbtxt, it takes the given one', async (t) => {
  const folder = t.testdir({ model: { 1: {} } })
  await cp(join(BASIC, 'add_one_batch/1'), join(folder, 'model/1'), { recursive: true })
  const { ready } = await startTestStep(t, [`--model-directory=ns:m.v2-1=${folder}/model`])
  t.equal((await infer(Number(ready.httpPort), 'ns:m.v2-1'))[0], 200)
})

await t.test('its contents are followed in the mode poll', async (t) => {
  const folder = t.testdir()
  const directory = join(folder, 'model')
  await cp(join(BASIC, 'add_one_batch'), directory, { recursive: true })
  const named = `--model-directory=add_one_batch=${directory}`
  const polled = await startTestStep(t, [
    named,
    '--model-control-mode=poll',
    '--repository-poll-secs=1',
  ])
  const revision = (): unknown => polled.member.options.revisions()[0]?.[2]
  const before = revision()
  await writeFile(join(directory, '1/notes.txt'), 'changed')
  while (revision() === before || revision() === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await rename(directory, join(folder, 'away'))
  t.equal((await infer(Number(polled.ready.httpPort), 'add_one_batch'))[0], 200, 'it stays')
})
