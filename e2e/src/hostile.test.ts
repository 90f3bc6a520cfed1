import { connect } from 'node:net'
import { testFactor, testSeed } from '@tutti/chassis/testing'
import t from 'tap'
import { residentBytes } from './control-churn.ts'
import { poke, seededRandom, sendBadRequests, servesRightBytes } from './hostile.ts'
import { restCall } from './rest-call.ts'
import { serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'

t.setTimeout(600_000)

const MODELS = ['ens_chain', 'add_one_batch']
const SEED = testSeed()
const COUNT = 600 * testFactor()
/** Far above the noise of a heap, far below what a leak of a request's bytes would take in the soak. */
const GROWTH_BYTES = 96 * 1024 * 1024

await t.test('bad requests get typed errors, cost no memory and do no harm', async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, MODELS)] })
  await sendBadRequests(t, serving, { count: COUNT, seed: SEED })
  const before = await residentBytes(serving)
  const refused = await sendBadRequests(t, serving, { count: COUNT, seed: SEED + 1 })
  t.ok(refused > COUNT / 2, `${refused} of ${COUNT} were refused`)
  const grown = (await residentBytes(serving)) - before
  t.ok(grown < GROWTH_BYTES, `memory grew by ${Math.round(grown / 1024)} KiB`)
  await servesRightBytes(t, serving)
})

await t.test('garbage on the ports and half-open connections do no harm', async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, MODELS)] })
  const random = seededRandom(SEED)
  const ports = [serving.grpcPort, serving.httpPort, serving.metricsPort]
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const shapes = [preface, Buffer.from('GET / HTTP/9.9\r\n\r\n'), Buffer.alloc(4096)]
  for (let i = 0; i < 60; i++) {
    const noise = Buffer.from(Array.from({ length: 64 }, () => Math.floor(random() * 256)))
    const bytes = Buffer.concat([i % 2 === 0 ? (shapes[i % shapes.length] ?? noise) : noise, noise])
    await Promise.all(ports.map((port) => poke(port, bytes)))
  }
  for (const port of ports) {
    for (let i = 0; i < 20; i++) {
      const socket = connect(port, '127.0.0.1')
      socket.once('error', () => {})
      socket.write('P')
      t.teardown(() => socket.destroy())
    }
  }
  await servesRightBytes(t, serving)
  t.equal((await restCall(serving.metricsPort, 'GET', '/metrics')).status, 200)
  const { code } = await serving.process.stop()
  t.equal(code, 0, 'and it still ends well')
})
