import { silentLogger, systemClock } from '@tutti/chassis'
import { InferenceClient } from '@tutti/protocol'
import t, { type Test } from 'tap'
import { Admission } from '../admission.ts'
import { ScriptedBackend, type ScriptedModel } from '../testing/index.ts'
import { type GrpcServer, type GrpcServerOptions, startGrpcServer } from './grpc-server.ts'

interface Door {
  readonly server: GrpcServer
  readonly client: InferenceClient
  readonly backend: ScriptedBackend
}

async function openDoor(
  t: Test,
  models: Readonly<Record<string, ScriptedModel>>,
  o: Partial<GrpcServerOptions> = {},
): Promise<Door> {
  const backend = new ScriptedBackend(models)
  const server = await startGrpcServer({
    backend,
    address: '127.0.0.1',
    port: 0,
    admission: new Admission(),
    clock: systemClock,
    log: silentLogger,
    identity: { name: 'tutti', version: '1', extensions: ['statistics'] },
    ...o,
  })
  const client = new InferenceClient({ address: `127.0.0.1:${server.port}` })
  t.teardown(async () => {
    client.close()
    await server.close()
  })
  return { server, client, backend }
}

const x = { name: 'x', datatype: 'FP32', shape: [1, 2], data: new Uint8Array(8) } as const

await t.test('a request is answered with what the model gives', async (t) => {
  const { client } = await openDoor(t, { m: {} })
  const answer = await client.infer({ modelName: 'm', id: 'r1', inputs: [x] })
  t.match(answer, { modelName: 'm', modelVersion: '1', id: 'r1' })
  t.strictSame(answer.outputs.map((o) => ({ ...o, data: [...o.data] })), [{ ...x, data: [...x.data] }])
})
await t.test('unknown', async (t) => {
  const { client } = await openDoor(t, { m: {} })
  await t.rejects(client.infer({ modelName: 'nope', inputs: [x] }), { reason: 'MODEL_NOT_FOUND', code: 'NOT_FOUND' })
})
