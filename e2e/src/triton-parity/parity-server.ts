import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import type { Target } from '../serving.ts'
import { type Answer, addedModels, type Call, type Case } from './case.ts'
import { comparable } from './comparable.ts'
import { CountReader, type Counts, growth } from './counts.ts'
import { type GrpcService, openGrpcService } from './grpc-service.ts'
import { callRest } from './rest-service.ts'

const PATIENCE_MS = 25_000

/** A server that cases run against, Triton or Tutti. */
export interface ParityServer {
  /** Makes the calls of a case, one after the other. @returns an answer for each. */
  run(test: Case): Promise<readonly Answer[]>
  /** Whether the server takes connections. */
  isThere(): Promise<boolean>
  close(): void
}

/**
 * @param o.repository - the folder that the server serves, to which cases may add models.
 */
export function openServer(o: {
  readonly target: Target
  readonly repository: string
}): ParityServer {
  const grpc = openGrpcService(o.target.grpcPort)
  const counts = new CountReader(o.target, grpc)
  return {
    run: async (test) => {
      const added = addedModels(test)
      await addFiles(o.repository, test.files ?? {})
      const before = await countsBefore(counts, test.calls)
      try {
        const answers: Answer[] = []
        for (const call of test.calls) {
          const answer = await answerTo(call, { ...o, grpc, counts, before })
          answers.push(comparable(call, answer, o.repository))
        }
        return answers
      } finally {
        if (added.length > 0) {
          counts.expectChange()
          await removeModels(o.repository, grpc, added)
          await makeReady(o.repository, grpc, added)
        }
      }
    },
    isThere: async () => {
      const answer = await callRest(o.target.httpPort, { method: 'GET', path: '/v2/health/live' })
      return answer['status'] === 200
    },
    close: () => grpc.close(),
  }
}

async function countsBefore(reader: CountReader, calls: readonly Call[]): Promise<Counts> {
  const models = calls.flatMap((call) => ('counts' in call ? call.counts : []))
  return models.length === 0 ? new Map() : await reader.read(models)
}

async function answerTo(
  call: Call,
  o: {
    readonly target: Target
    readonly grpc: GrpcService
    readonly counts: CountReader
    readonly before: Counts
  },
): Promise<Answer> {
  if ('counts' in call) return growth(o.before, await o.counts.read(call.counts))
  o.counts.expectChange()
  if ('rpc' in call) return await o.grpc.call(call)
  if ('path' in call) return await callRest(o.target.httpPort, call)
  await settle(o.grpc)
  return {}
}

/** @throws Error if that takes very long: a Triton that waits for a process which has failed. */
async function settle(grpc: GrpcService): Promise<void> {
  const end = performance.now() + PATIENCE_MS
  await until('no model is being loaded or unloaded', async () => {
    if (performance.now() > end) throw new Error('models are being loaded or unloaded for ever')
    const { message } = await grpc.call({ rpc: 'RepositoryIndex', requests: [{}] })
    const models: readonly { readonly state?: string }[] = Object(message).models ?? []
    return models.every(({ state = '' }) => !/LOADING/.test(state)) ? true : undefined
  })
}

async function addFiles(
  repository: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(repository, path)), { recursive: true })
    const [, base64] = /^base64:(.*)$/.exec(text) ?? []
    const bytes = base64 === undefined ? text : Buffer.from(base64, 'base64')
    await writeFile(join(repository, path), bytes)
  }
}

/** Ensembles come after what they need, so that they are unloaded first. */
async function removeModels(
  repository: string,
  grpc: GrpcService,
  models: readonly string[],
): Promise<void> {
  for (const model of models.toReversed()) {
    await grpc.call({ rpc: 'RepositoryModelUnload', requests: [{ model_name: model }] })
  }
  await settle(grpc)
  for (const model of models) await rm(join(repository, model), { recursive: true, force: true })
}

/** An ensemble, which costs neither server a process. */
const RIGHT_CONFIG = JSON.stringify({
  platform: 'ensemble',
  input: [{ name: 'X', data_type: 'TYPE_FP32', dims: [2, 3] }],
  output: [{ name: 'Y', data_type: 'TYPE_FP32', dims: [2, 3] }],
  ensemble_scheduling: {
    step: [
      {
        model_name: 'matrix',
        model_version: -1,
        input_map: { X: 'X' },
        output_map: { Y: 'Y' },
      },
    ],
  },
})

/** After a load that failed a server is not ready, though the model is unloaded and gone, until one of its name has been loaded. */
async function makeReady(
  repository: string,
  grpc: GrpcService,
  models: readonly string[],
): Promise<void> {
  const { message } = await grpc.call({ rpc: 'ServerReady', requests: [{}] })
  if (Object(message).ready === true) return
  const parameters = { config: { string_param: RIGHT_CONFIG } }
  for (const model of models) {
    await addFiles(repository, { [`${model}/1/note`]: '' })
    await grpc.call({
      rpc: 'RepositoryModelLoad',
      requests: [{ model_name: model, parameters }],
    })
  }
  await removeModels(repository, grpc, models)
}
