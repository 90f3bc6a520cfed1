import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { silentLogger } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { OP, plainFrame } from './frames.ts'
import { InstanceProcess } from './instance-process.ts'
import { ProcessOutput } from './process-output.ts'
import type { ForkedProcess } from './zygote.ts'

/** A process whose end is told when the test says so, and the other end of its connection. */
async function forkScripted(t: Test) {
  const server = createServer()
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const remote = connect(address.port, '127.0.0.1')
  t.teardown(() => remote.destroy())
  const [frames]: Socket[] = await accepted
  if (frames === undefined) throw new Error('no connection')
  const ended = Promise.withResolvers<number>()
  const origin = { model: 'm', version: '1', instance: 'm_0' }
  const output = new ProcessOutput(silentLogger, origin, () => 0)
  const end = { ended: ended.promise, kill: () => {}, problem: () => undefined }
  const forked: ForkedProcess = { frames, output, ...end }
  const process = new InstanceProcess({
    process: forked,
    memory: undefined,
    arenaBytes: 1024,
    task: { task: 'complete' },
    name: 'm_0',
    receiver: { onFrame: () => {}, onEnd: () => {} },
  })
  return { process, remote, ended }
}

await t.test('what a process wrote last counts, though its end is heard first', async (t) => {
  const { process, remote, ended } = await forkScripted(t)
  ended.resolve(0)
  await new Promise(setImmediate)
  remote.end(plainFrame(OP.READY, 0, { config: null }))
  t.match(await process.ready(), { config: null })
  await process.ended
})

await t.test('an end without an answer is an error that says how', async (t) => {
  const { process, remote, ended } = await forkScripted(t)
  ended.resolve(3)
  remote.end()
  await t.rejects(process.ready(), {
    message: "Stub process 'm_0' is not healthy: it exited with status 3",
  })
})

await t.test('a connection that outlives its process does not keep it', async (t) => {
  const { process, ended } = await forkScripted(t)
  ended.resolve(0)
  await t.rejects(process.ready(), { message: /it exited with status 0/ })
})
