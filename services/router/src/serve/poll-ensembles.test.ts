import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLogger } from '@tutti/chassis'
import { createManualClock, until } from '@tutti/chassis/testing'
import { scanRepositories } from '@tutti/repository'
import t, { type Test } from 'tap'
import { readEnsembles } from '../catalog/ensemble-source.ts'
import { chain, oneToOne, ScriptedReplicas } from '../testing/index.ts'
import { pollEnsembles } from './poll-ensembles.ts'

/** The fields that a line of a log has. */
interface Line {
  readonly message: string
  readonly model?: string
  readonly reason?: string
}

/** A router that follows a repository with the ensemble `e`, over a step that serves `a` and `b`. */
async function open(t: Test) {
  const directory = t.testdir({ e: { 'config.pbtxt': chain('a'), 1: { '.keep': '' } } })
  const lines: Line[] = []
  const write = (line: string): number => lines.push(JSON.parse(line))
  const log = createLogger({ level: 'warn', name: 'test', destination: { write } })
  const replicas = new ScriptedReplicas({ awaitsSteps: true, log })
  const { router } = replicas
  const models = ['a', 'b'].map((model) => ({ model, revision: 'r', config: oneToOne }))
  replicas.serve('step', models)
  const clock = createManualClock()
  const flags = {
    'model-control-mode': 'poll' as const,
    'model-repository': [directory],
    'repository-poll-secs': 1,
  }
  const follow = await pollEnsembles(flags, { router, clock, log })
  const end = new AbortController()
  const ended = follow(end.signal)
  t.teardown(async () => {
    end.abort()
    await ended
  })
  const index = async (): Promise<readonly string[]> =>
    (await router.repositoryIndex(false))
      .filter(({ name }) => name.startsWith('e'))
      .map(({ name, state, reason }) => `${name}: ${state} ${reason}`.trimEnd())
  /** Until so many lines about an ensemble were logged. */
  const logged = (count: number): Promise<Line> =>
    until(
      () => `${count} lines, there are ${JSON.stringify(lines)}`,
      () => {
        clock.advance(1000)
        return lines.filter(({ model = '' }) => model.startsWith('e'))[count - 1]
      },
    )
  const modelOf = (): unknown => Object(router.view.find('e')).plan?.steps[0].model
  const serves = (model: string): Promise<boolean> =>
    until(`e is over ${model}`, () => {
      clock.advance(1000)
      return modelOf() === model
    })
  return { directory, replicas, index, logged, serves, modelOf, clock }
}

type Fault = readonly [what: string, make: (path: string) => Promise<unknown>, reason: RegExp]

const put =
  (contents: string | Uint8Array) =>
  (path: string): Promise<void> =>
    writeFile(path, contents)

const FAULTS: readonly Fault[] = [
  ['a syntax error', put(`${chain('a')}\n}`), /config\.pbtxt: line \d, column \d+: got /],
  [
    'an unknown field',
    put(`${chain('a')}\nnosuch: 1`),
    /config\.pbtxt: line 6, column 1: .*nosuch/,
  ],
  [
    'a value of another type',
    put(`${chain('a')} max_batch_size: "x"`),
    /config\.pbtxt: line \d, column \d+: got /,
  ],
  ['a value that ends too early', put('name: "e'), /config\.pbtxt: line \d, column \d+: got /],
  ['bytes that are no text', put(Uint8Array.of(0x6e, 0xff, 0xfe)), /config\.pbtxt/],
  ['a directory', (path) => mkdir(path), /cannot read model 'e\d*': .*not a regular file/],
  ['a link that leads to itself', (path) => symlink(path, path), /cannot read model 'e\d*': ELOOP/],
  ['a rule that is broken', put(`${chain('a')} max_batch_size: -1`), /'max_batch_size' must be/],
]

await t.test('an ensemble that cannot be read stays as it was, and the log says why', async (t) => {
  const { directory, index, logged, serves, modelOf, clock } = await open(t)
  await serves('a')
  const path = join(directory, 'e', 'config.pbtxt')
  const nothing: readonly Fault[] = [
    ['an empty file', put(''), /config\.pbtxt: it has no ensemble_scheduling/],
    ['no file', async () => {}, /config\.pbtxt: it has no ensemble_scheduling/],
  ]
  for (const [i, [what, make, reason]] of [...FAULTS, ...nothing].entries()) {
    await rm(path, { recursive: true })
    await make(path)
    const { message, reason: told } = await logged(i + 1)
    t.match([message, told], ['ensemble stays as it was', reason], what)
    t.same(await index(), ['e: READY'], what)
    const other = modelOf() === 'a' ? 'b' : 'a'
    await rm(path, { recursive: true, force: true })
    await writeFile(path, chain(other))
    await serves(other)
  }
  t.comment('one that goes, or is another model now, is not served')
  await rename(join(directory, 'e'), join(directory, '.e'))
  await until('it is gone', async () => {
    clock.advance(1000)
    return (await index()).length === 0
  })
})

await t.test(
  'one that never could be read is listed with the reason, unless a step has it',
  async (t) => {
    const { directory, index, logged, replicas } = await open(t)
    const folder = (i: number): string => join(directory, `e${i}`)
    for (const [i, [, make]] of FAULTS.entries()) {
      await mkdir(join(folder(i), '1'), { recursive: true })
      await writeFile(join(folder(i), '1', '.keep'), '')
      await make(join(folder(i), 'config.pbtxt'))
    }
    await logged(FAULTS.length)
    const lines = await index()
    t.equal(lines.length, FAULTS.length + 1)
    for (const [i, [what, , reason]] of FAULTS.entries()) {
      t.match(lines[i + 1], /^e\d: UNAVAILABLE /, what)
      t.match(lines[i + 1], reason, what)
    }
    const other = await readEnsembles(await scanRepositories([directory]))
    t.same(
      other.map(({ name, reason }) => [name, reason !== '']).slice(1),
      FAULTS.map((_, i) => [`e${i}`, true]),
      'so it is where nothing is followed',
    )
    replicas.serve('other', [{ model: 'e0', revision: 'r', config: oneToOne }])
    t.equal((await index())[1], 'e0: READY')
  },
)
