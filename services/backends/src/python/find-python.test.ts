// needs: python
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import { setTimeout } from 'node:timers/promises'
import { createLogger, silentLogger, systemClock } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { makeCached } from './cached-folder.ts'
import { type FindPythonOptions, findPython } from './find-python.ts'
import { probePython } from './probe-python.ts'
import { runChildProgram, whatFailed } from './run-program.ts'

t.setTimeout(300_000)
const PYTHON = TEST_PYTHON ?? ''

async function temporaryFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-find-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function script(t: Test, name: string, text: string): Promise<string> {
  const path = join(await temporaryFolder(t), name)
  await writeFile(path, `#!/bin/sh\n${text}\n`)
  await chmod(path, 0o755)
  return path
}

/** A log, and what it says. */
function keepLog() {
  const lines: string[] = []
  const log = createLogger({ name: 'test', destination: { write: (line) => lines.push(line) } })
  return { log, lines, records: () => lines.map((line) => JSON.parse(line)) }
}

/** Waits for a file of a program that runs, and reads it. */
async function written(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch(() => '')
  if (text.endsWith('\n')) return text.trim()
  await setTimeout(10)
  return await written(path)
}

/** Until it has ended, which a test without end would tell. */
async function gone(pid: number): Promise<void> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z')
  if (/\) [ZX]/.test(status)) return
  await setTimeout(10)
  await gone(pid)
}

/** An interpreter without packages. */
const bare = (t: Test) => script(t, 'bare', `exec ${PYTHON} -S -I "$@"`)

function search(cache: string, candidates: readonly string[], o: Partial<FindPythonOptions> = {}) {
  const common = { log: silentLogger, clock: systemClock, modules: ['numpy'] as const }
  return findPython({ ...common, cache, candidates, ...o })
}

await t.test(
  'what keeps an interpreter from running models is told',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const report = '{"version":"3.8.1","executable":"/p","modules":{}}'
    const oldTorch =
      '{"version":"3.11.1","executable":"/p","modules":{"numpy":{"version":"2.0"},"torch":{"version":"1.9.0"}}}'
    const cases = [
      ['/nowhere/python3', /^it does not run \(spawn \S+ ENOENT\)$/],
      [await script(t, 'other', 'echo 3'), /^it does not run \(it is no Python\)$/],
      [await script(t, 'silent', 'exit 0'), /^it does not run \(Unexpected end of JSON input\)$/],
      [
        await script(t, 'loud', 'echo no such luck >&2; exit 1'),
        /^it does not run \(no such luck\)$/,
      ],
      [
        await script(t, 'old', `echo noise; echo '${report}'`),
        /^Python 3.8.1 is too old, want 3.9 or newer$/,
      ],
      [
        await script(t, 'old-torch', `echo '${oldTorch}'`),
        /^PyTorch 1.9.0 is too old, want 1.12 or newer$/,
      ],
      [await bare(t), /^it cannot import numpy \(ModuleNotFoundError: /],
    ] as const
    for (const [interpreter, problem] of cases) {
      t.match((await probePython(interpreter, ['numpy', 'torch'])).problem, problem)
    }
    const { problem, version, modules } = await probePython(PYTHON, ['numpy'])
    t.equal(problem, undefined)
    t.match(version, /^3\.\d+\.\d+$/)
    t.match(modules.numpy?.version, /^\d+\.\d+/)
  },
)

await t.test(
  'the first candidate that has the modules is taken',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const cache = await temporaryFolder(t)
    t.equal(await search(cache, ['/nowhere/python3', PYTHON, 'absent']), PYTHON)
    t.same(await readdir(cache), [], 'and no environment is made')
    const { log, records } = keepLog()
    const named = ['/nowhere/python3']
    t.equal(await search(cache, ['/absent', PYTHON], { named, log }), PYTHON)
    t.match(records(), [
      {
        level: 'warn',
        message: 'Python passed over',
        interpreter: '/nowhere/python3',
        problem: /ENOENT/,
      },
      { message: 'Python chosen', interpreter: PYTHON, modules: ['numpy'] },
    ])
    t.equal(records().length, 2, 'what no flag names is not warned of')
  },
)

await t.test('a program that is stopped takes with it what it has started', async (t) => {
  const file = join(await temporaryFolder(t), 'pid')
  const program = await script(t, 'parent', `sleep 600 & echo $! > ${file}; wait; exit 0`)
  const controller = new AbortController()
  const options = { cwd: '/', timeoutMs: 250_000, signal: controller.signal }
  const running = runChildProgram(program, [], options)
  const child = Number(await written(file))
  controller.abort()
  await t.rejects(running, { message: 'it was aborted' })
  await gone(child)
  const slow = await script(t, 'slow', 'echo begun >&2; exec sleep 600')
  for (const signal of [undefined, new AbortController().signal]) {
    const limited = runChildProgram(slow, [], { cwd: '/', timeoutMs: 500, signal })
    t.equal(await limited.catch(whatFailed), 'it took longer than 0.5 s')
  }
})

await t.test(
  'an environment that did not answer in time is not made anew',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const cache = await temporaryFolder(t)
    const interpreter = await bare(t)
    const { log, records } = keepLog()
    env['PIP_NO_INDEX'] = '1'
    t.teardown(() => delete env['PIP_NO_INDEX'])
    await t.rejects(search(cache, [interpreter], { log }))
    const { folder } = records()[0]
    const started = join(cache, 'started')
    await mkdir(join(cache, 'slow', 'bin'), { recursive: true })
    await symlink('slow', folder)
    const slow = join(cache, 'slow', 'bin', 'python')
    await writeFile(slow, `#!/bin/sh\necho > ${started}; sleep 600\n`)
    await chmod(slow, 0o755)
    const controller = new AbortController()
    const searching = search(cache, [interpreter], { signal: controller.signal })
    void written(started).then(() => controller.abort())
    await t.rejects(searching, {
      reason: 'MODEL_LOAD_FAILED',
      message: /cannot tell whether the Python environment in \S+ works: .*aborted/,
    })
    t.equal(await readlink(folder), 'slow')
  },
)

await t.test(
  'an environment is made once, and anew if it is broken; what cannot be had is told',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const cache = await temporaryFolder(t)
    const interpreter = await bare(t)
    const { log, lines, records } = keepLog()
    env['PIP_NO_INDEX'] = '1'
    t.teardown(() => delete env['PIP_NO_INDEX'])
    await t.rejects(search(cache, [interpreter], { log }), {
      reason: 'MODEL_LOAD_FAILED',
      message:
        /cannot make a Python environment for models in \S+ \(ERROR: .*No matching distribution found.*\); no Python here can run models \('\S+bare': it cannot import numpy .*apt-get install python3-numpy/,
    })
    t.same(await readdir(cache), [], 'nothing is left')
    delete env['PIP_NO_INDEX']
    const { folder } = JSON.parse(lines[0] ?? '')
    await mkdir(join(cache, 'broken'))
    await symlink('broken', folder)
    lines.length = 0
    // Timers of this clock take 10 ms for 10 s.
    const hasty = {
      ...systemClock,
      setTimer: (ms: number, f: () => void) => systemClock.setTimer(ms / 1000, f),
    }
    const made = await search(cache, [interpreter], { log, clock: hasty })
    t.equal(made, join(folder, 'bin', 'python'))
    t.match(
      lines.join(''),
      /made anew[^]*"message":"making a Python environment"[^]*"message":"Python environment made"/,
    )
    const shown = records().filter(({ elapsedMs }) => elapsedMs !== undefined)
    t.match(shown[0], { message: 'making a Python environment', folder, said: '' })
    t.match(shown.at(-1).said, /numpy/)
    t.equal((await probePython(made, ['numpy'])).problem, undefined)
    lines.length = 0
    t.equal(await search(cache, [interpreter], { log }), made)
    t.match(records(), [{ message: 'Python chosen', interpreter: made }])
    t.equal(lines.length, 1, 'it is found again')
  },
)

await t.test(
  'where no Python can be had the error says what to install',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const cache = await temporaryFolder(t)
    await t.rejects(search(cache, ['/nowhere/python3', await script(t, 'no', 'exit 1')]), {
      reason: 'MODEL_LOAD_FAILED',
      message:
        /^no Python here can run models \('\/nowhere\/python3': .*apt-get install python3-numpy.*--python PATH$/,
    })
    await t.rejects(search(cache, ['/nowhere/python3'], { modules: ['numpy', 'torch'] }), {
      message: /apt-get install python3-torch python3-numpy/,
    })
    await t.rejects(search(cache, [await bare(t)], { signal: AbortSignal.abort() }), {
      message: /abort/,
    })
    t.same(await readdir(cache), [])
  },
)

await t.test(
  'an environment whose packages lie elsewhere is not kept',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const cache = await temporaryFolder(t)
    env['PIP_TARGET'] = await temporaryFolder(t)
    t.teardown(() => delete env['PIP_TARGET'])
    await t.rejects(search(cache, [await bare(t)]), {
      message: /^cannot make a Python environment for models in \S+ \(it cannot import numpy/,
    })
    t.same(await readdir(cache), [])
  },
)

await t.test('of several that make the same at once all use the first', async (t) => {
  const cache = await temporaryFolder(t)
  const [one, other] = await Promise.all([
    makeCached(cache, 'key', (directory) => writeFile(join(directory, 'one'), '')),
    makeCached(cache, 'key', (directory) => writeFile(join(directory, 'other'), '')),
  ])
  t.equal(one, other)
  const names = await readdir(cache)
  t.equal(names.length, 2, 'the link and what it leads to; the other is gone')
  t.ok((await lstat(join(cache, 'key'))).isSymbolicLink())
})

await t.test('what a maker has left that was killed is removed a day later', async (t) => {
  const cache = await temporaryFolder(t)
  const left = ['key-0123456789ab', 'key-0123456789ac', 'key-other', 'key2-0123456789ab']
  const longAgo = new Date(Date.now() - 25 * 3600 * 1000)
  for (const name of left) {
    await mkdir(join(cache, name))
    if (name !== 'key-0123456789ac') await utimes(join(cache, name), longAgo, longAgo)
  }
  const folder = await makeCached(cache, 'key', (directory) => writeFile(join(directory, 'x'), ''))
  t.same(await readdir(folder), ['x'])
  const names = await readdir(cache)
  t.same(
    left.map((name) => names.includes(name)),
    [false, true, true, true],
  )
  t.equal(await makeCached(cache, 'key', () => Promise.reject(new Error('made twice'))), folder)
})
