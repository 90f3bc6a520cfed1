import { createServer } from 'node:net'
import t from 'tap'
import { listenOn } from './listen.ts'

const HERE = { address: '127.0.0.1', port: 0 }

await t.test('what fails once a server listens is told and ends nothing', async (t) => {
  const server = createServer()
  t.teardown(() => server.close())
  const failures: Error[] = []
  const port = await listenOn(server, { ...HERE, onError: (error) => failures.push(error) })
  t.ok(port > 0)
  const failure = new Error('accept EMFILE')
  t.doesNotThrow(() => server.emit('error', failure))
  t.doesNotThrow(() => server.emit('error', failure), 'a second time, too')
  t.same(failures, [failure, failure])
})

await t.test('an address that is taken is SETTING_INVALID', async (t) => {
  const first = createServer()
  t.teardown(() => first.close())
  const onError = (error: Error) => t.fail(error.message)
  const port = await listenOn(first, { ...HERE, onError })
  await t.rejects(listenOn(createServer(), { ...HERE, port, onError }), {
    reason: 'SETTING_INVALID',
    message: new RegExp(`^cannot listen on 127.0.0.1:${port}: .*EADDRINUSE`),
    cause: undefined,
  })
})
