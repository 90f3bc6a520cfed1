import { existsSync } from 'node:fs'
import { copyFile, cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePort, startProcess } from '@tutti/chassis/testing'
import type { BenchServer } from './servers.ts'

/** Where the parts of NVIDIA's Python package are that carries a tritonserver. */
interface TritonParts {
  readonly server: string
  readonly backend: string
  readonly stub: string
  readonly libraries: string
  readonly sitePackages: string
}

/** @throws Error if the interpreter's environment has no nvidia-pytriton for its version of Python. */
function findTriton(python: string, version: string): TritonParts {
  const sitePackages = join(dirname(python), '..', 'lib', `python${version}`, 'site-packages')
  const triton = join(sitePackages, 'pytriton', 'tritonserver')
  const parts = {
    server: join(triton, 'bin', 'tritonserver'),
    backend: join(triton, 'backends', 'python'),
    stub: join(triton, 'python_backend_stubs', version, 'triton_python_backend_stub'),
    libraries: join(sitePackages, 'nvidia_pytriton.libs'),
    sitePackages,
  }
  for (const path of Object.values(parts)) {
    if (!existsSync(path)) throw new Error(`${path} is not there: bench/python/requirements.txt`)
  }
  return parts
}

/**
 * Starts NVIDIA's tritonserver over a repository of Python models and ensembles.
 *
 * @param o.python - an interpreter with nvidia-pytriton; models run on it too.
 * @param o.version - its version, as 3.11.
 */
export async function startTriton(
  repository: string,
  o: { readonly python: string; readonly version: string },
): Promise<BenchServer> {
  const parts = findTriton(o.python, o.version)
  const backends = await mkdtemp(join(tmpdir(), 'tutti-triton-'))
  try {
    return await startFrom(backends, parts, repository, o.python)
  } catch (error) {
    await rm(backends, { recursive: true })
    throw error
  }
}

async function startFrom(
  backends: string,
  parts: TritonParts,
  repository: string,
  python: string,
): Promise<BenchServer> {
  const stub = join(backends, 'python', 'triton_python_backend_stub')
  await cp(parts.backend, join(backends, 'python'), { recursive: true })
  await copyFile(parts.stub, stub)
  // It takes no port 0.
  const [grpcPort, httpPort] = [await freePort(), await freePort()]
  const args = [
    `--model-repository=${repository}`,
    `--backend-directory=${backends}`,
    '--grpc-address=127.0.0.1',
    `--grpc-port=${grpcPort}`,
    '--http-address=127.0.0.1',
    `--http-port=${httpPort}`,
    '--allow-metrics=false',
  ]
  const started = await startProcess(parts.server, args, {
    env: {
      ...process.env,
      PATH: `${dirname(python)}:${process.env['PATH']}`,
      PYTHONPATH: parts.sitePackages,
      LD_LIBRARY_PATH: parts.libraries,
    },
    readyWhen: (line) => line.includes('Started HTTPService'),
    readyTimeoutMs: 120_000,
  })
  return {
    pid: started.pid,
    grpcPort,
    httpPort,
    consolePort: Number.NaN,
    stop: async () => {
      await started.stop()
      await rm(backends, { recursive: true })
    },
  }
}
