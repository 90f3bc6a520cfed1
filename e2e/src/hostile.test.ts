import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { residentBytes } from './control-churn.ts'
import { poke, seededRandom, sendBadRequests, servesRightBytes } from './hostile.ts'
import { restCall } from './rest-call.ts'
import { serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'

t.setTimeout(600_000)

const MODELS = ['ens_chain', 'add_one_batch']
const SEED = Number(process.env['TUTTI_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const COUNT = 3_000
/** Far above the noise of a heap, far below what a leak of a request's bytes would take in the soak. */
const GROWTH_BYTES = 96 * 1024 * 1024

await t.test('bad requests get typed errors, cost no memory and harm nobody', async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, MODELS)] })
  await sendBadRequests(t, serving, { count: COUNT, seed: SEED })
  const before = await residentBytes(serving)
  const refused = await sendBadRequests(t, serving, { count: COUNT, seed: SEED + 1 })
  t.ok(refused > COUNT / 2, `${refused} of ${COUNT} were refused`)
  const grown = (await residentBytes(serving)) - before
  t.ok(grown < GROWTH_BYTES, `memory grew by ${Math.round(grown / 1024)} KiB`)
  await servesRightBytes(t, serving)
})

await t.test('garbage on the ports and half-open connections harm nobody', async (t) => {
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

/** Sends bytes to a port and gives back everything that comes until the server hangs up. */
async function exchange(test: Test, port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  test.teardown(() => socket.destroy())
  let answer = ''
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1')
  })
  // A reset is an end like any other here.
  socket.on('error', () => {})
  socket.write(Buffer.from(text, 'latin1'))
  await once(socket, 'close')
  return answer
}

const SMUGGLED = 'GET /v2/smuggled HTTP/1.1\r\nhost: x\r\n\r\n'

/** Heads whose body two parsers would end at different places; behind each one stands a request of its own. */
const AMBIGUOUS: Readonly<Record<string, string>> = {
  'both lengths': `content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  'both lengths, the other way round': `transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n`,
  'two content lengths': 'content-length: 2\r\ncontent-length: 0\r\n\r\n{}',
  'a list of content lengths': 'content-length: 2, 2\r\n\r\n{}',
  'a content length with a sign': 'content-length: +2\r\n\r\n{}',
  'a content length in hexadecimal': 'content-length: 0x2\r\n\r\n{}',
  'chunked, but not last': 'transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n',
  'chunked twice': 'transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  'an unknown transfer encoding': 'transfer-encoding: xchunked\r\n\r\n0\r\n\r\n',
  'a blank before the colon': 'transfer-encoding : chunked\r\n\r\n0\r\n\r\n',
  'a folded header': 'x: y\r\n transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n{}',
  'a chunk size that lies': 'transfer-encoding: chunked\r\n\r\n2\r\n{}xx\r\n0\r\n\r\n',
  'a chunk size that is none': 'transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
  'a bare line feed': 'content-length: 2\n\n{}',
}

await t.test('an HTTP request that is ambiguous is refused with what follows it', async (t) => {
  const serving = await serve(t, { repositories: [await copyModels(t, MODELS)] })
  for (const [what, rest] of Object.entries(AMBIGUOUS)) {
    const head = 'POST /v2/models/ens_chain/infer HTTP/1.1\r\nhost: x\r\n'
    const answer = await exchange(t, serving.httpPort, `${head}${rest}${SMUGGLED}`)
    t.match(answer, /^HTTP\/1\.1 400 /, what)
    t.equal(answer.split('HTTP/1.1 ').length, 2, `${what}: one answer`)
  }
  await servesRightBytes(t, serving)
})
