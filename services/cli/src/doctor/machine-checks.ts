import { existsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import {
  checkEngine,
  createDevices,
  type EngineCheckOptions,
  probeSharedMemory,
} from '@tutti/backends'
import { hostPort, listenAt } from '@tutti/chassis'
import { absent, type Finding } from '@tutti/command-line/results'
import type { ListedDescriptor } from '@tutti/engines'

const OLDEST_NODE = 24
const CLIENT_MEMORY = '/dev/shm'
const LITTLE_BYTES = 64 * 2 ** 20

export function checkNode(version: string): Finding {
  const found = `Node ${version}`
  if (Number.parseInt(version, 10) >= OLDEST_NODE) return { check: 'node', status: 'ok', found }
  const mending = `install Node ${OLDEST_NODE} or newer from https://nodejs.org`
  return { check: 'node', status: 'missing', found, mending }
}

/** Checks that an engine has what it needs on this machine. @param models - names of the models that need the engine. */
export async function checkEngineFor(
  backend: ListedDescriptor['backend'],
  models: readonly string[],
  o: EngineCheckOptions,
): Promise<Finding> {
  const finding = { check: backend, ...(await checkEngine(backend, o)) }
  return finding.status === 'absent' ? absent(finding, models) : finding
}

/**
 * Checks the shared memory for tensors: that of processes of models, and that of clients on this machine.
 *
 * @param models - names of the models that run in processes of their own.
 */
export async function checkSharedMemory(models: readonly string[]): Promise<readonly Finding[]> {
  const check = 'shared memory'
  const problem = probeSharedMemory()
  const own: Finding =
    problem === undefined
      ? { check, status: 'ok', found: 'processes of models can share memory' }
      : {
          check,
          // Tensors go over sockets then.
          status: 'note',
          found: `processes of models cannot share memory: ${problem}`,
          mending:
            'run on Linux with memfd_create; without it large tensors are copied over sockets',
          neededBy: models,
        }
  if (!existsSync(CLIENT_MEMORY)) return [own]
  const { bavail, bsize } = await statfs(CLIENT_MEMORY)
  const found = `${CLIENT_MEMORY} has ${Math.floor((bavail * bsize) / 2 ** 20)} MiB for regions of clients`
  if (bavail * bsize >= LITTLE_BYTES) return [own, { check, status: 'ok', found }]
  const mending = 'remove what is left there, or give a container more (docker run --shm-size=1g)'
  return [own, { check, status: 'note', found, mending }]
}

/** Checks that a GPU can be used. @param models - names of the models that need a GPU. @param devices - replaced by tests. */
export async function checkGpu(
  models: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  devices = createDevices({ env }),
): Promise<Finding> {
  const { count, found } = await devices.cuda()
  if (count > 0) return { check: 'gpu', status: 'ok', found }
  const mending =
    "install NVIDIA's driver, or start the container with its GPUs (docker run --gpus all), or set KIND_CPU in instance_group"
  return absent({ check: 'gpu', found, mending }, models)
}

/**
 * Checks that a port is free.
 *
 * @param name - beginning of the port's flags: grpc, http or metrics.
 * @returns undefined for port 0, which stands for any free port.
 */
export async function checkPort(
  name: string,
  address: string,
  port: number,
): Promise<Finding | undefined> {
  if (port === 0) return undefined
  const where = `${hostPort(address, port)} of ${name}`
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(listenAt(address, port), resolve)
    })
    await new Promise((resolve) => server.close(resolve))
    return { check: 'port', status: 'ok', found: `${where} is free` }
  } catch (error) {
    const { code, message } = Object(error)
    const flags = `--${name}-port or --${name}-address`
    if (code !== 'EADDRINUSE') {
      const mending = `name another by ${flags}`
      return { check: 'port', status: 'missing', found: `${where}: ${message}`, mending }
    }
    // A server that runs already is no fault of the machine.
    const mending = `another server has it, perhaps Tutti itself: end it before you start one here, or name another by ${flags}`
    return { check: 'port', status: 'note', found: `${where} is taken`, mending }
  }
}
