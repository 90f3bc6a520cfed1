import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { startRestServer } from './rest-server.ts'
import { createRestBackend, response } from './testing/rest-backend.ts'

async function start(t: Test, o: Parameters<typeof createRestBackend>[0] = {}) {
  const backend = createRestBackend(o)
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  return server.port
}

/** Sends bytes, and reads all that comes until the server closes. */
async function exchange(port: number, sent: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  await once(socket, 'connect')
  socket.write(sent)
  return await text(socket)
}

const GET = 'GET /v2/health/live HTTP/1.1\r\nConnection: close\r\n'
const REFUSALS = [
  ['no Host', `${GET}\r\n`, 400, 'MALFORMED_MESSAGE', 'got 0 headers Host, want one'],
  [
    'two Hosts',
    `${GET}Host: a\r\nhOST: b\r\n\r\n`,
    400,
    'MALFORMED_MESSAGE',
    'got 2 headers Host, want one',
  ],
  [
    'an expectation',
    `${GET}Host: a\r\nExpect: magic\r\n\r\n`,
    417,
    'UNSUPPORTED',
    "header Expect: got 'magic', want '100-continue'",
  ],
  [
    'long headers',
    `${GET}X: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
    'MESSAGE_TOO_LARGE',
    'the headers of the request have more than 16384 bytes',
  ],
  [
    'no request',
    'nonsense\r\n\r\n',
    400,
    'MALFORMED_MESSAGE',
    'no HTTP request: the request line is not METHOD TARGET HTTP/1.1',
  ],
  [
    'no length',
    'POST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n',
    400,
    'MALFORMED_MESSAGE',
    "no HTTP request: Content-Length: got 'x', want a number of bytes",
  ],
  [
    'a broken chunk',
    'POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    400,
    'MALFORMED_MESSAGE',
    'no HTTP request: a chunk does not begin with its size',
  ],
  [
    'a tunnel',
    'CONNECT a:1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    405,
    'METHOD_NOT_ALLOWED',
    'Method Not',
  ],
] as const

await t.test('what is not HTTP, or not for this server, has a text and a reason', async (t) => {
  const port = await start(t)
  for (const [name, sent, status, reason, why] of REFUSALS) {
    const got = await exchange(port, sent)
    const [head = '', body = ''] = got.split('\r\n\r\n')
    t.match(head, new RegExp(`^HTTP/1.1 ${status} `), name)
    t.match(head, `tutti-error-reason: ${reason}`, name)
    t.match(JSON.parse(body), { error: why }, name)
  }
  const plain = await exchange(port, 'GET /v2/health/live HTTP/1.0\r\n\r\n')
  t.match(plain, /^HTTP\/1.1 200 /, 'HTTP/1.0 has no Host')
})

await t.test('a refusal comes behind the whole answer before it', async (t) => {
  const data = Buffer.alloc(2 ** 25)
  const outputs = [{ name: 'x', datatype: 'UINT8', shape: [data.byteLength], data }] as const
  const port = await start(t, {
    infer: async function* () {
      yield response(outputs)
    },
  })
  const body = JSON.stringify({
    inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 1], data: [1] }],
    parameters: { binary_data_output: true },
  })
  const head = 'POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n'
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  await once(socket, 'connect')
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)
  await once(socket, 'readable')
  socket.write('nonsense\r\n\r\n')
  const got = await text(socket)
  const [answer = ''] = got.split('\r\n\r\n', 1)
  const [, length] = /^content-length: (\d+)/m.exec(answer) ?? []
  const refusal = got.slice(answer.length + 4 + Number(length))
  t.equal(refusal.slice(0, 12), 'HTTP/1.1 400')
})

await t.test('a tunnel whose client resets its connection at once harms nothing', async (t) => {
  const port = await start(t)
  for (let i = 0; i < 50; i += 1) {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n')
    socket.resetAndDestroy()
    await once(socket, 'close')
  }
  t.match(await exchange(port, `${GET}Host: a\r\n\r\n`), /^HTTP\/1.1 200 /)
})
