import { silentLogger, systemClock } from '@tutti/chassis'
import { fromGrpcStatus, InferenceClient } from '@tutti/protocol'
import { Admission } from '../admission.ts'
import { type GrpcServerOptions, startGrpcServer } from '../grpc/grpc-server.ts'
import type { GrpcServer } from '../grpc/rpc-server.ts'
import { ScriptedBackend, type ScriptedModel } from './scripted-backend.ts'

/** A gRPC door over scripted models, with a client. */
export interface GrpcDoor {
  readonly server: GrpcServer
  readonly client: InferenceClient
  readonly backend: ScriptedBackend
  readonly admission: Admission
  readonly address: string
}

/**
 * Opens a door on a free port of the loopback interface.
 *
 * @param scope - what closes it again when the test ends.
 */
export async function openGrpcDoor(
  scope: { teardown(close: () => Promise<void>): void },
  models: Readonly<Record<string, ScriptedModel>>,
  o: Partial<GrpcServerOptions> = {},
): Promise<GrpcDoor> {
  const backend = new ScriptedBackend(models)
  const admission = o.admission ?? new Admission()
  const server = await startGrpcServer({
    backend,
    address: '127.0.0.1',
    port: 0,
    clock: systemClock,
    log: silentLogger,
    identity: { name: 'tutti', version: '1.2', extensions: ['classification', 'statistics'] },
    ...o,
    admission,
  })
  const address = `127.0.0.1:${server.port}`
  const client = new InferenceClient({ address })
  scope.teardown(async () => {
    client.close()
    await server.close()
  })
  return { server, client, backend, admission, address }
}

/** Sends a ModelInferRequest as an object, for the model `m` unless it says otherwise: it can say what our client does not. */
export function inferObject(door: GrpcDoor, request: object): Promise<object> {
  return new Promise((resolve, reject) => {
    door.client.objects.ModelInfer({ model_name: 'm', ...request }, (error, answer) => {
      if (error !== null) reject(fromGrpcStatus(error))
      else resolve(answer ?? {})
    })
  })
}
