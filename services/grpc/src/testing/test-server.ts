import { silentLogger, systemClock } from '@tutti/chassis'
import { until } from '@tutti/chassis/testing'
import { fromGrpcStatus } from '@tutti/protocol'
import { InferenceClient } from '@tutti/protocol/client'
import { Admission } from '@tutti/serving'
import { ScriptedBackend, type ScriptedModel } from '@tutti/serving/testing'
import { PoisonedMemory } from '@tutti/tensor/testing'
import { type GrpcServerOptions, startGrpcServer } from '../grpc-server.ts'

export type TestServer = Awaited<ReturnType<typeof openTestServer>>

/**
 * Starts a gRPC server over scripted models, with a client, on a free port of the loopback interface.
 *
 * @param scope - closes client and server when the test ends.
 */
export async function openTestServer(
  scope: { teardown(close: () => Promise<void>): void },
  models: Readonly<Record<string, ScriptedModel>>,
  o: Partial<GrpcServerOptions> = {},
) {
  const backend = new ScriptedBackend(models)
  const admission = o.admission ?? new Admission()
  const memory = new PoisonedMemory()
  const server = await startGrpcServer({
    backend,
    address: '127.0.0.1',
    port: 0,
    clock: systemClock,
    log: silentLogger,
    identity: { name: 'tutti', version: '1.2', extensions: ['classification', 'statistics'] },
    memory,
    ...o,
    admission,
  })
  const address = `127.0.0.1:${server.port}`
  const client = new InferenceClient({ address })
  scope.teardown(async () => {
    client.close()
    await server.close()
    await until('all memory is given back', () => memory.open === 0)
  })
  return { server, client, backend, admission, address, memory }
}

/**
 * Sends a ModelInferRequest given as an object, which may hold fields that our client never sends. Its model is `m` by default.
 */
export function inferObject(served: TestServer, request: object): Promise<object> {
  return new Promise((resolve, reject) => {
    served.client.objects.ModelInfer({ model_name: 'm', ...request }, (error, answer) => {
      if (error !== null) reject(fromGrpcStatus(error))
      else resolve(answer ?? {})
    })
  })
}
