import { Metadata } from '@grpc/grpc-js'
import { silentLogger, systemClock } from '@tutti/chassis'
import { openTestServer } from '@tutti/grpc/testing'
import { fromGrpcStatus } from '@tutti/protocol'
import { startRestServer } from '@tutti/rest'
import { type ControlGuardOptions, createControlGuard } from '@tutti/serving'
import { RecordingControl } from '@tutti/serving/testing'
import t, { type Test } from 'tap'

/** Both servers of one process behind one guard; each call loads or unloads `m`, and gives the code of its end. */
async function open(t: Test, o: ControlGuardOptions) {
  const guardControl = createControlGuard(o)
  const { backend, client } = await openTestServer(t, {}, { guardControl })
  const control = new RecordingControl()
  backend.control = control
  const clock = systemClock
  const options = { backend, guardControl, clock, log: silentLogger, address: '127.0.0.1', port: 0 }
  const server = await startRestServer(options)
  t.teardown(() => server.close())
  const overGrpc = (action: 'Load' | 'Unload', authorization?: string): Promise<string> =>
    new Promise((resolve) => {
      const metadata = new Metadata()
      if (authorization !== undefined) metadata.set('authorization', authorization)
      const request = { model_name: 'm' }
      client.objects[`RepositoryModel${action}`](request, metadata, (error) =>
        resolve(error === null ? 'OK' : fromGrpcStatus(error).code),
      )
    })
  const overRest = async (action: 'Load' | 'Unload', authorization?: string): Promise<number> => {
    const url = `http://127.0.0.1:${server.port}/v2/repository/models/m/${action.toLowerCase()}`
    const headers = authorization === undefined ? {} : { authorization }
    return (await fetch(url, { method: 'POST', headers })).status
  }
  return { control, overGrpc, overRest }
}

await t.test('only callers with the token load and unload', async (t) => {
  let token = 'first'
  const { control, overGrpc, overRest } = await open(t, {
    readToken: () => token,
    isLoopbackOnly: false,
  })
  for (const action of ['Load', 'Unload'] as const) {
    for (const wrong of [
      undefined,
      'Bearer second',
      'Basic first',
      'Bearer ',
      'Bearer first first',
    ]) {
      t.equal(await overGrpc(action, wrong), 'UNAUTHENTICATED', `${action} ${wrong}`)
      t.equal(await overRest(action, wrong), 401, `${action} ${wrong}`)
    }
    t.same([control.loads.length, control.unloads.length], [action === 'Load' ? 0 : 2, 0])
    t.equal(await overGrpc(action, 'Bearer first'), 'OK')
    t.equal(await overRest(action, 'bearer first'), 200)
  }
  token = 'second'
  t.equal(await overRest('Load', 'Bearer first'), 401, 'the file has another token now')
  t.equal(await overRest('Load', 'Bearer second'), 200)
})

await t.test('callers of this machine are told from those of others', async (t) => {
  const { control, overGrpc, overRest } = await open(t, { isLoopbackOnly: true })
  t.same([await overGrpc('Load'), await overRest('Unload')], ['OK', 200])
  t.same([control.loads.length, control.unloads.length], [1, 1])
  const guard = createControlGuard({ isLoopbackOnly: true })
  for (const address of ['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1'])
    guard({ headers: {}, address })
  for (const address of ['10.0.0.1', '::ffff:10.0.0.1', 'fe80::1', '128.0.0.1', undefined]) {
    t.throws(() => guard({ headers: {}, address }), {
      reason: 'MODEL_CONTROL_REFUSED',
      code: 'PERMISSION_DENIED',
    })
  }
})
