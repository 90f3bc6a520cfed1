import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import t from 'tap'
import type { Exchange } from './exchange.ts'
import {
  answerText,
  echo,
  openClient,
  readWhole,
  send,
  startHttp1,
} from './testing/http1-server.ts'

const GET = 'GET /a HTTP/1.1\r\nhost: x\r\n\r\n'
const POST = 'POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n'
/** Short times, each for the test of its own. */
const SHORT_MS = 50

await t.test('a connection without a request is closed after its time', async (t) => {
  const { port } = await startHttp1(t, echo, { times: { keepAliveMs: SHORT_MS } })
  const client = await openClient(port)
  client.write(GET)
  t.match(await client.all, /^HTTP\/1\.1 200 OK\r\n[^]*keep-alive: timeout=0\r\n[^]*\/a $/)
})

await t.test('empty lines between requests do not begin one', async (t) => {
  const { port } = await startHttp1(t, echo, {
    times: { headersTimeoutMs: SHORT_MS, keepAliveMs: 4 * SHORT_MS },
  })
  const client = await openClient(port)
  client.write(`${GET}\r\n`)
  t.notMatch(await client.all, '408', 'idle, not slow')
})

const SLOW: Readonly<Record<string, readonly string[]>> = {
  'nothing at all': [],
  'a head byte by byte': GET.slice(0, -1).split(''),
  'half a body': [`${POST}he`],
  'half a chunk': ['POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhe'],
  'half of the second head': [GET, 'GET /b HT'],
}

for (const [what, pieces] of Object.entries(SLOW)) {
  await t.test(`a client that sends ${what} is answered 408`, async (t) => {
    const times = { headersTimeoutMs: SHORT_MS, requestTimeoutMs: SHORT_MS }
    const left: boolean[] = []
    const { port } = await startHttp1(
      t,
      (exchange) => {
        exchange.whenOver((isAnswered) => left.push(isAnswered))
        echo(exchange)
      },
      { times },
    )
    const client = await openClient(port)
    for (const piece of pieces) {
      client.write(piece)
      await nextTurn()
    }
    const last = (await client.all).split('HTTP/1.1 ').at(-1)
    t.match(last, /^408 Request Timeout\r\n[^]*connection: close\r\n/)
    t.ok(left.length === 0 || left.at(-1) === what.startsWith('half of'), 'its handler knows')
  })
}

await t.test(
  'a client that ends after it has its answer is left alone, before it has left',
  async (t) => {
    const taken: Exchange[] = []
    const { port } = await startHttp1(t, (exchange) => taken.push(exchange))
    const early = await openClient(port)
    early.socket.end(GET)
    t.equal(await early.all, '', 'it has left')
    t.ok(taken[0]?.isOver && !taken[0].hasAnswered)
    const late = await openClient(port)
    late.write(GET)
    while (taken.length < 2) await nextTurn()
    if (taken[1]) answerText(taken[1], 'x'.repeat(2 ** 25))
    late.socket.end()
    t.equal((await late.all).split('\r\n\r\n')[1]?.length, 2 ** 25, 'the whole answer')
  },
)

await t.test('a body without a reader is dropped, and the next request is served', async (t) => {
  const { port } = await startHttp1(t, (exchange) => answerText(exchange, exchange.head.target))
  const chunks = 'POST /c HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'
  const client = await openClient(port)
  for (const piece of `${POST}hello${chunks}${GET}`.match(/[^]{1,7}/g) ?? []) {
    client.write(piece)
    await nextTurn()
  }
  const got = await client.until('200 OK', 3)
  t.same(got.match(/\/.$|\/.(?=HTTP)/g), ['/a', '/c', '/a'])
  client.socket.end()
})

await t.test('a body that breaks behind its answer brings no second answer', async (t) => {
  const { port } = await startHttp1(t, (exchange) => answerText(exchange, 'no'))
  const client = await openClient(port)
  client.write('POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n')
  await client.until('no')
  client.write('zz\r\n')
  t.equal((await client.all).split('HTTP/1.1 ').length, 2)
})

await t.test('a body that breaks within its answer ends the answer', async (t) => {
  const { port } = await startHttp1(t, (exchange) => {
    exchange.begin({ status: 200, headers: {} })
    void exchange.write([Buffer.from('part')])
  })
  const client = await openClient(port)
  client.write('POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n')
  await client.until('part')
  client.write('zz\r\n')
  t.match(await client.all, /part\r\n$/)
})

await t.test('a client of another protocol is told at once', async (t) => {
  const { port } = await startHttp1(t)
  const others = {
    tls: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    http2: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
    'a line feed': 'GET / HTTP/1.1\n',
    'a line feed within the fields': 'GET / HTTP/1.1\r\nhost: x\n',
    'a return alone': 'GET / HTTP/1.1\rh',
    redis: '*1\r\n$4\r\nPING\r\n',
    smtp: 'EHLO there\r\n',
    'a line without a version': 'GET /\r\n',
  }
  for (const [what, bytes] of Object.entries(others)) {
    for (const pieces of [[bytes], bytes.split('')]) {
      const client = await openClient(port)
      for (const piece of pieces) {
        client.write(piece)
        if (pieces.length > 1) await nextTurn()
      }
      t.match(await client.all, /^HTTP\/1\.1 400 /, what)
    }
  }
})

await t.test('a head has at most 16 KiB, however it is cut', async (t) => {
  const { port } = await startHttp1(t)
  const [before, after] = ['GET / HTTP/1.1\r\nx: ', '\r\n\r\n']
  for (const [bytes, status] of [
    [16_384, 200],
    [16_385, 431],
  ] as const) {
    const head = before + 'y'.repeat(bytes - before.length) + after
    for (let at = head.length - 6; at < head.length; at += 1) {
      const client = await openClient(port)
      client.write(head.slice(0, at))
      await nextTurn()
      await nextTurn()
      client.write(head.slice(at))
      t.match(await client.until('\r\n\r\n'), `HTTP/1.1 ${status} `, `${bytes} bytes, cut at ${at}`)
      client.socket.destroy()
    }
  }
  t.match(await send(port, [`${before}${'y'.repeat(2 ** 20)}`]), 'HTTP/1.1 431 ', 'no end of it')
  t.match(
    await send(port, ['\r\n'.repeat(2 ** 16), GET]),
    'HTTP/1.1 200 ',
    'empty lines do not count',
  )
})

await t.test(
  'stopped, a server ends idle connections, and the others behind their answers',
  async (t) => {
    const waiting: Exchange[] = []
    const { port, server, connections } = await startHttp1(t, (exchange) => waiting.push(exchange))
    const idle = await openClient(port)
    const served = await openClient(port)
    const streamed = await openClient(port)
    const pipelined = await openClient(port)
    const dropped = await openClient(port)
    const take = async () => {
      while (waiting.length === 0) await nextTurn()
      return waiting.shift()
    }
    served.write(GET)
    const ofServed = await take()
    streamed.write(GET)
    const ofStreamed = await take()
    ofStreamed?.begin({ status: 200, headers: {} })
    pipelined.write(`${GET}${GET}`)
    const ofPipelined = await take()
    dropped.write(`${POST}he`)
    const ofDropped = await take()
    if (ofDropped) answerText(ofDropped, 'no')
    await dropped.until('no')
    connections.stop()
    t.equal(await idle.all, '')
    if (ofServed) answerText(ofServed, 'one')
    t.match(await served.all, /connection: close\r\n[^]*one$/)
    ofStreamed?.end()
    t.match(
      await streamed.all,
      /\r\n\r\n0\r\n\r\n$/,
      'although its head said that the connection stays',
    )
    if (ofPipelined) answerText(ofPipelined, 'first')
    t.match(await pipelined.all, /connection: close\r\n[^]*first$/)
    dropped.write('llo')
    t.match(await dropped.all, /no$/)
    server.close()
    await once(server, 'close')
  },
)

await t.test('ended, an exchange ends its own connection only while it is in work', async (t) => {
  const seen: Exchange[] = []
  const { port } = await startHttp1(t, (exchange) => void seen.push(exchange))
  const client = await openClient(port)
  client.write(`${GET}${GET}`)
  while (seen.length < 1) await nextTurn()
  if (seen[0]) answerText(seen[0], 'one')
  while (seen.length < 2) await nextTurn()
  seen[0]?.destroy()
  if (seen[1]) answerText(seen[1], 'two')
  await client.until('two')
  client.write(`${GET}${GET}`)
  while (seen.length < 3) await nextTurn()
  seen[2]?.destroy()
  await client.all
  t.equal(seen.length, 3, 'what was sent behind it is not served')
})

await t.test('whatever its clients do, a server closes', async (t) => {
  const { port, server, connections } = await startHttp1(t, (exchange) => {
    if (exchange.head.target === '/never') return
    readWhole(exchange, () => answerText(exchange, 'x'.repeat(2 ** 24)))
  })
  const sent = [
    '',
    'GE',
    GET,
    GET.repeat(1000),
    `${POST}he`,
    'GET /never HTTP/1.1\r\n\r\n',
    'nonsense\r\n',
  ]
  for (const bytes of sent) {
    const reset = connect(port, '127.0.0.1')
    await once(reset, 'connect')
    if (bytes !== '') await new Promise((resolve) => reset.write(bytes, resolve))
    reset.resetAndDestroy()
    const silent = await openClient(port)
    silent.socket.pause()
    silent.write(bytes)
  }
  for (let turn = 0; turn < 20; turn += 1) await nextTurn()
  server.close()
  connections.destroy()
  await once(server, 'close')
  t.pass('no connection is left')
})

await t.test('over TLS, requests are served and connections end as they do without', async (t) => {
  const file = join(t.testdir(), 'both.pem')
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const named = ['-subj', '/CN=x', '-addext', 'subjectAltName=IP:127.0.0.1']
  execFileSync('openssl', [...made, ...named, '-keyout', file, '-out', `${file}.crt`], {
    stdio: 'ignore',
  })
  const cert = readFileSync(`${file}.crt`)
  const server = createTlsServer({ key: readFileSync(file), cert, noDelay: true })
  const { port, connections } = await startHttp1(t, echo, { server })
  const open = () => openClient(port, connectTls({ port, host: '127.0.0.1', ca: cert }))
  const [client, idle, other] = [await open(), await open(), await open()]
  const body = 'x'.repeat(2 ** 20)
  client.write(`${GET}POST /b HTTP/1.1\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  t.ok((await client.until(body)).includes('/a '))
  other.write('nonsense\r\n')
  t.match(await other.all, 'HTTP/1.1 400 ')
  connections.stop()
  t.equal(await idle.all, '')
  t.ok((await client.all).endsWith(`/b ${body}`))
  server.close()
  await once(server, 'close')
})
