import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { startProcess } from './start-process.ts'

const NODE = process.execPath

/** A process that has died but was not collected yet by its parent (state Z) is not alive. */
function isAlive(pid: number): boolean {
  const state = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)])
    .stdout.toString()
    .trim()
  return state !== '' && !state.startsWith('Z')
}

await t.test('a process is ready after its line, and stops by signal', async (t) => {
  const script = 'console.log("a"); console.error("port 5"); setInterval(() => {}, 1000)'
  const started = await startProcess(NODE, ['-e', script], {
    readyWhen: (line) => line.startsWith('port'),
  })
  t.teardown(() => started.stop('SIGKILL'))
  t.same(started.lines.toSorted(), ['a', 'port 5'])
  t.equal(await started.waitForLine((line) => line === 'a'), 'a')
  t.same(await started.stop(), { code: null, signal: 'SIGTERM' })
  t.same(await started.stop(), { code: null, signal: 'SIGTERM' })
  t.equal(isAlive(started.pid), false)
  await t.rejects(
    started.waitForLine((line) => line === 'b'),
    { message: /ended; it wrote:\n/ },
  )
})

await t.test('a process that ends before it is ready is told with its output', async (t) => {
  await t.rejects(
    startProcess(NODE, ['-e', 'console.log("no model"); process.exit(3)'], {
      readyWhen: () => false,
    }),
    { message: /ended; it wrote:\nno model/ },
  )
})

await t.test('a process that is not ready in time is killed', async (t) => {
  await t.rejects(
    startProcess('/bin/sh', ['-c', 'echo waiting; sleep 60'], {
      readyWhen: () => false,
      readyTimeoutMs: 50,
    }),
    { message: /was not ready after 50 ms/ },
  )
})

await t.test('a process that ignores its signal is killed after the grace', async (t) => {
  const started = await startProcess(
    '/bin/sh',
    ['-c', 'trap "" TERM; echo up; while :; do sleep 1; done'],
    {
      readyWhen: (line) => line === 'up',
    },
  )
  t.same(await started.stop('SIGTERM', 10), { code: null, signal: 'SIGKILL' })
})

await t.test('what a process leaves behind ends with it', async (t) => {
  const started = await startProcess('/bin/sh', ['-c', 'sleep 1000 & echo $!; wait'], {
    readyWhen: () => true,
  })
  await started.stop()
  const left = Number(started.lines[0])
  while (isAlive(left)) await new Promise(setImmediate)
  t.pass()
})

await t.test('a process does not outlive a parent that is killed', async (t) => {
  const script = `
    import { startProcess } from ${JSON.stringify(import.meta.resolve('./start-process.ts'))}
    const { pid } = await startProcess('/bin/sleep', ['1000'])
    console.log(pid)
    setInterval(() => {}, 1000)`
  const parent = spawn(NODE, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => parent.kill('SIGKILL'))
  const [data] = await once(parent.stdout, 'data')
  const pid = Number(String(data))
  t.equal(isAlive(pid), true)
  parent.kill('SIGKILL')
  await once(parent, 'exit')
  while (isAlive(pid)) await new Promise(setImmediate)
  t.pass()
})
