import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { freePort, startProcess } from '@tutti/chassis/testing'
import type { Member } from './contest.ts'
import { PYTHON_CASES } from './python-cases.ts'
import { ROOT } from './servers.ts'

const READY_MS = 180_000

/** Options with which a peer is started. */
export interface PeerOptions {
  /** An interpreter with its packages. */
  readonly python: string
  /** The repository of the comparison: its ONNX files are read. */
  readonly repository: string
  /** Stops the peer. */
  readonly opened: AsyncDisposableStack
}

function environment(python: string): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${dirname(python)}${delimiter}${process.env['PATH']}` }
}

const [ADD_SUB = '', FACE = ''] = PYTHON_CASES.map(({ request }) => request.modelName)

/** MLServer with a worker process for each of two cores. */
export async function startMlserver({ python, repository, opened }: PeerOptions): Promise<Member> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-mlserver-'))
  opened.defer(() => rm(folder, { recursive: true }))
  const [grpcPort, httpPort, metricsPort] = [await freePort(), await freePort(), await freePort()]
  const settings = {
    host: '127.0.0.1',
    grpc_port: grpcPort,
    http_port: httpPort,
    metrics_port: metricsPort,
    grpc_max_message_length: -1,
    parallel_workers: 2,
    debug: false,
  }
  await writeFile(join(folder, 'settings.json'), JSON.stringify(settings))
  await cp(join(ROOT, 'bench/python/mlserver_models.py'), join(folder, 'mlserver_models.py'))
  for (const [name, type] of [
    [ADD_SUB, 'AddSub'],
    [FACE, 'Face'],
  ] as const) {
    await mkdir(join(folder, name))
    const model = { name, implementation: `mlserver_models.${type}` }
    await writeFile(join(folder, name, 'model-settings.json'), JSON.stringify(model))
  }
  const program = join(dirname(python), 'mlserver')
  const env = {
    ...environment(python),
    PYTHONPATH: folder,
    TUTTI_BENCH_MODELS: repository,
  }
  let loaded = 0
  const started = await startProcess(python, [program, 'start', folder], {
    cwd: folder,
    env,
    readyWhen: (line) => {
      if (/Loaded model '/.test(line)) loaded += 1
      return loaded === PYTHON_CASES.length
    },
    readyTimeoutMs: READY_MS,
  })
  opened.defer(async () => void (await started.stop()))
  return { name: 'MLServer', pid: started.pid, grpcPort, httpPort }
}

/** Ray Serve on this machine alone, without its dashboard. */
export async function startRay({ python, repository, opened }: PeerOptions): Promise<Member> {
  const [grpcPort, httpPort] = [await freePort(), await freePort()]
  const program = join(ROOT, 'bench/python/ray_models.py')
  const started = await startProcess(
    python,
    [program, String(grpcPort), String(httpPort), repository],
    {
      env: {
        ...environment(python),
        PYTHONPATH: dirname(program),
        RAY_USAGE_STATS_ENABLED: '0',
        RAY_AUTH_MODE: 'disabled',
      },
      readyWhen: (line) => line === 'ready',
      readyTimeoutMs: READY_MS,
    },
  )
  opened.defer(async () => void (await started.stop()))
  return { name: 'Ray Serve', pid: started.pid, grpcPort, httpPort }
}
