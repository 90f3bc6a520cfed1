import { once } from 'node:events'
import { cp } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { startProcess } from '@tutti/chassis/testing'
import type { Test } from 'tap'
import { ROOT, serve } from '../serving.ts'
import { tempFolder } from '../temp-repository.ts'
import { PYTHON_FLAGS } from '../triton-client.ts'
import type { Answer, Case } from './case.ts'
import { DECOUPLED, MODELS } from './generate/models.ts'
import { openServer, type ParityServer } from './parity-server.ts'

/** The models that both servers serve from the start. */
export const FIXTURES = join(ROOT, 'model_repository/.variants/fixtures/parity')

const FLAGS = [
  '--model-control-mode=explicit',
  '--exit-on-error=false',
  ...[...MODELS, ...DECOUPLED].map(({ name }) => `--load-model=${name}`),
]

/** A repository of its own for a server. */
export async function copyFixtures(t: Test): Promise<string> {
  const repository = await tempFolder(t)
  await cp(FIXTURES, repository, { recursive: true })
  return repository
}

/** Tutti in one process, over a repository of its own. */
export async function startTuttiServer(t: Test): Promise<ParityServer> {
  const repository = await copyFixtures(t)
  const target = await serve(t, { repositories: [repository], flags: [...FLAGS, ...PYTHON_FLAGS] })
  const server = openServer({ target, repository })
  t.teardown(() => server.close())
  return server
}

/** A Triton that starts again after a case that has ended it. */
export interface TritonServer {
  /** @returns undefined if the case has ended the server, or blocked it: there is nothing to compare with. */
  run(test: Case): Promise<readonly Answer[] | undefined>
}

/** Triton, by the program that TUTTI_TRITON names. */
export async function startTriton(t: Test, program: string): Promise<TritonServer> {
  let current = await startOnce(t, program)
  return {
    run: async (test) => {
      const { started, server } = current
      const answers = await server.run(test).catch(() => undefined)
      // One that crashes refuses connections long before its process has ended.
      if (answers !== undefined && (!isLost(answers) || (await server.isThere()))) {
        return await revived(server, answers)
      }
      server.close()
      await started.stop('SIGKILL')
      current = await startOnce(t, program)
      return undefined
    },
  }
}

function isLost(answers: readonly Answer[]): boolean {
  return answers.some(({ code, status }) => code === 14 || status === 'connection ended')
}

/**
 * Loads a model whose process the case has ended again, as Triton does not.
 *
 * @returns undefined then: how Triton answers after that is a defect.
 */
async function revived(
  server: ParityServer,
  answers: readonly Answer[],
): Promise<readonly Answer[] | undefined> {
  const [, name] =
    /Stub process '(\w+?)(?:_\d+)+' is not healthy/.exec(JSON.stringify(answers)) ?? []
  if (name === undefined) return answers
  const requests = [{ model_name: name }]
  const calls = [
    { rpc: 'RepositoryModelUnload', requests },
    { settle: true } as const,
    { rpc: 'RepositoryModelLoad', requests },
  ]
  await server.run({ id: 'revive', calls })
  return undefined
}

async function startOnce(t: Test, program: string) {
  const repository = await copyFixtures(t)
  const [grpcPort = 0, httpPort = 0, metricsPort = 0] = await freePorts(3)
  const args = [
    `--model-repository=${repository}`,
    ...FLAGS,
    ...['grpc', 'http', 'metrics'].map((name) => `--${name}-address=127.0.0.1`),
    `--grpc-port=${grpcPort}`,
    `--http-port=${httpPort}`,
    `--metrics-port=${metricsPort}`,
  ]
  const started = await startProcess(program, args, {
    readyWhen: (line) => line.includes('Started Metrics Service'),
    readyTimeoutMs: 180_000,
  })
  t.teardown(() => started.stop('SIGTERM', 30_000))
  const server = openServer({ target: { grpcPort, httpPort, metricsPort }, repository })
  t.teardown(() => server.close())
  return { started, server }
}

/** Triton cannot choose ports itself. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => Number(Object(server.address()).port))
  await Promise.all(servers.map((server) => new Promise((settle) => server.close(settle))))
  return ports
}
