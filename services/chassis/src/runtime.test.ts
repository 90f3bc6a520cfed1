import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { type RuntimeProcess, runWithFlags, SERVING_FLAGS } from './runtime.ts'

/** Sets the flags, allocates, and says in which process it was and how often V8 marked its heap. */
const PROGRAM = `
  import { PerformanceObserver, constants } from 'node:perf_hooks'
  import { setImmediate } from 'node:timers/promises'
  import { runWithFlags } from ${JSON.stringify(new URL('runtime.ts', import.meta.url).href)}
  const { WANTED, EXECVE } = process.env
  if (EXECVE === 'none') process.execve = undefined
  process.stderr.write('started ')
  runWithFlags(JSON.parse(WANTED), process)
  let marked = 0
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) {
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) marked += 1
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  const held = Array.from({ length: 200_000 }, (_, i) => ({ i }))
  for (let i = 0; i < 600; i += 1) {
    Buffer.alloc(1 << 20)
    await setImmediate()
  }
  await setImmediate()
  const { pid, argv, execArgv } = process
  console.log(JSON.stringify({ pid, marked, held: held.length, args: argv.slice(1), execArgv }))
`

interface Report {
  readonly pid: number
  readonly marked: number
  readonly args: readonly string[]
  readonly execArgv: readonly string[]
}

async function runProgram(
  wanted: readonly string[],
  o: {
    readonly nodeFlags?: readonly string[]
    readonly env?: Readonly<Record<string, string>>
  } = {},
): Promise<Report & { readonly startedPid: number | undefined; readonly err: string }> {
  const flags = [...(o.nodeFlags ?? []), '--input-type=module', `--eval=${PROGRAM}`]
  const running = promisify(execFile)(process.execPath, [...flags, '--', 'one', '--two=2'], {
    env: { ...o.env, WANTED: JSON.stringify(wanted) },
  })
  const startedPid = running.child.pid
  const { stdout, stderr } = await running
  const report: Report = JSON.parse(stdout)
  return { ...report, startedPid, err: stderr }
}

const plain = await runProgram([])

await t.test('a program begins again with its flags, as the same process', async (t) => {
  const flagged = await runProgram(SERVING_FLAGS)
  t.same(flagged.execArgv.slice(0, SERVING_FLAGS.length), SERVING_FLAGS)
  t.same(flagged.args, ['one', '--two=2'])
  t.equal(flagged.pid, flagged.startedPid)
  t.equal(flagged.err, 'started started ')
  t.equal(plain.err, 'started ')
  t.ok(flagged.marked * 2 < plain.marked, `marked ${flagged.marked} times, without ${plain.marked}`)
})

await t.test(
  'a program that cannot begin again runs on, with the flags that V8 still reads',
  async (t) => {
    const inspected = { nodeFlags: ['--inspect=127.0.0.1:0'] }
    for (const o of [{ env: { EXECVE: 'none' } }, inspected]) {
      const flagged = await runProgram(SERVING_FLAGS, o)
      t.match(flagged.err, /^[^]*started $/)
      t.equal(flagged.err.split('started ').length, 2)
      t.ok(flagged.marked < plain.marked, `marked ${flagged.marked} times, without ${plain.marked}`)
    }
  },
)

await t.test('a flag that V8 does not know is left out', async (t) => {
  const known = '--heap-growing-percent=25'
  for (const env of [{}, { EXECVE: 'none' }]) {
    const { err } = await runProgram(['--no-such-flag=3', '--nor-this'], { env })
    t.equal(err, 'started ')
  }
  const { execArgv, err } = await runProgram(['--no-such-flag=3', known])
  t.equal(execArgv[0], known)
  t.equal(err, 'started started ')
})

await t.test('what a start has left on the heap is given back', async (t) => {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8'
    import { freeStartMemory } from ${JSON.stringify(new URL('runtime.ts', import.meta.url).href)}
    const committed = () =>
      getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size
    // Alive for some collections, so that V8 makes the halves for young objects grow.
    let held = []
    for (let i = 0; i < 40; i += 1) held = [...held.slice(-200_000), ...Array.from({ length: 50_000 }, () => ({}))]
    held = []
    const before = committed()
    freeStartMemory()
    console.log(JSON.stringify([before, committed()]))
  `
  const sizes = async (...flags: readonly string[]): Promise<[number, number]> => {
    const args = [...flags, '--input-type=module', `--eval=${program}`]
    return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout)
  }
  const [grown, given] = await sizes('--expose-gc')
  t.ok(given * 4 <= grown, `from ${grown} to ${given} bytes`)
  const [before, after] = await sizes()
  t.equal(after, before, 'without a collector to call nothing happens')
})

await t.test('flags that came with the process win', (t) => {
  const cases: [string[], string[] | undefined][] = [
    [[], ['--heap-growing-percent=25', '--initial-old-space-size=128']],
    [['--heap-growing-percent=50'], ['--initial-old-space-size=128', '--heap-growing-percent=50']],
    [['--heap_growing_percent=50', '--initial-old-space-size', '64'], undefined],
  ]
  for (const [execArgv, started] of cases) {
    const runs: (readonly string[] | undefined)[] = []
    const source: RuntimeProcess = {
      argv: ['/bin/node', 'main.js', 'serve'],
      argv0: 'node',
      connected: false,
      env: {},
      execArgv,
      execPath: process.execPath,
      execve: (_, args) => {
        runs.push(args)
        throw new Error('another program runs')
      },
    }
    const run = () =>
      runWithFlags(['--heap-growing-percent=25', '--initial-old-space-size=128'], source)
    if (started === undefined) run()
    else t.throws(run)
    t.same(runs, started === undefined ? [] : [['node', ...started, 'main.js', 'serve']])
  }
  t.end()
})
