// needs: python
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { promisify } from 'node:util'
import { until } from '@tutti/chassis/testing'
import t from 'tap'
import { serve } from './serving.ts'
import { PYTHON, PYTHON_FLAGS, runTritonChecks } from './triton-client.ts'

const skip = PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set'
const REPOSITORY = 'model_repository/.variants/fixtures/python'
const FLAGS = [...PYTHON_FLAGS, '--backend-config=python,abandoned-timeout-seconds=1']

/** Processes of Python models that belong to a server, by their working folders. */
async function processesBelow(pid: number): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,ppid=,pgid=,args='])
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/))
  const zygotes = rows.filter(
    ([, parent, , ...args]) => Number(parent) === pid && args.join(' ').includes('tutti_worker'),
  )
  const ids = new Set(zygotes.map(([id]) => id))
  return rows.filter(([id, parent]) => ids.has(id) || ids.has(parent)).map(([id = '']) => id)
}

/** Files of shared memory that have our name: other programs have some, too. */
async function sharedFiles(): Promise<readonly string[]> {
  const names = await readdir('/dev/shm').catch(() => [])
  return names.filter((name) => name.includes('tutti'))
}

const isAlive = (pid: string): boolean => {
  try {
    process.kill(Number(pid), 0)
    return true
  } catch {
    return false
  }
}

await t.test('NVIDIA’s clients against Python models', { skip }, async (t) => {
  const serving = await serve(t, { repositories: [REPOSITORY], flags: FLAGS })
  const metrics = `--metrics=127.0.0.1:${serving.metricsPort}`
  await runTritonChecks(t, 'python_models.py', serving, [metrics])
  const pids = `--pids=${serving.process.pid}`
  await runTritonChecks(t, 'python_streams.py', serving, [metrics, pids])
})

await t.test('nothing is left of a server, however it ends', { skip }, async (t) => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const shared = await sharedFiles()
    const serving = await serve(t, { repositories: [REPOSITORY], flags: FLAGS })
    const pids = await processesBelow(serving.process.pid)
    t.ok(pids.length >= 6, `${pids.length} processes`)
    await serving.process.stop(signal)
    await until('its processes are gone', () => !pids.some(isAlive))
    t.notOk(pids.some(isAlive), `${signal}: no process`)
    t.same(await sharedFiles(), shared, `${signal}: no shared memory`)
  }
})
