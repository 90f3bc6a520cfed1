import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { BodyReader, Exchange } from './exchange.ts'
import { answerText, openClient, readWhole, send, startHttp1 } from './testing/http1-server.ts'

const POST = 'POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n'

/** Starts a server whose requests the test answers. */
async function startByHand(t: Test) {
  const seen: Exchange[] = []
  const { port } = await startHttp1(t, (exchange) => void seen.push(exchange))
  const take = async (): Promise<Exchange> => {
    for (;;) {
      const exchange = seen.shift()
      if (exchange !== undefined) return exchange
      await nextTurn()
    }
  }
  return { port, take, seen }
}

/** A reader that notes what it gets. */
function toReader(into: string[]): BodyReader {
  return {
    data: (piece) => into.push(piece.toString('latin1')),
    end: () => into.push('end'),
    left: () => into.push('left'),
  }
}

function bodyOf(answer: string): string | undefined {
  return answer.split('\r\n\r\n')[1]
}

await t.test('requests that come together are answered one after the other', async (t) => {
  const { port, take, seen } = await startByHand(t)
  const client = await openClient(port)
  client.write(
    'GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\nConnection: close\r\n\r\n',
  )
  for (const target of ['/1', '/2', '/3']) {
    const exchange = await take()
    t.equal(exchange.head.target, target)
    await nextTurn()
    t.equal(seen.length, 0, 'the next one waits')
    answerText(exchange, target)
  }
  t.same((await client.all).match(/(?<!P)\/\d/g), ['/1', '/2', '/3'])
})

await t.test('a client that sends more than it reads is not read further', async (t) => {
  const { port, take } = await startByHand(t)
  const client = await openClient(port)
  const sent = 'GET /x HTTP/1.1\r\n\r\n'.repeat(500_000)
  client.write(sent)
  const { socket } = await take()
  await new Promise((resolve) => setTimeout(resolve, 100))
  t.ok(socket.bytesRead < 200_000, `${socket.bytesRead} bytes are read`)
  client.socket.destroy()
})

await t.test(
  'a body that comes before its reader is kept, and its client is still heard',
  async (t) => {
    const { port, take } = await startByHand(t)
    const client = await openClient(port)
    client.write(`${POST}\r\nhello`)
    const exchange = await take()
    while (!exchange.isWhole) await nextTurn()
    // Another socket reads into the same memory meanwhile.
    t.match(await send(port, ['\xff'.repeat(1000)]), 'HTTP/1.1 400')
    const got: string[] = []
    exchange.read(toReader(got))
    t.same(got, ['hello', 'end'])
    const left = new Promise((resolve) => exchange.whenOver(resolve))
    client.socket.destroy()
    t.equal(await left, false, 'the client has left')
  },
)

await t.test(
  'a reader that pauses holds its client up, and gets the rest when it resumes',
  async (t) => {
    const { port, take } = await startByHand(t)
    const client = await openClient(port)
    const body = 'x'.repeat(2 ** 24)
    client.write(`POST / HTTP/1.1\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    const exchange = await take()
    const got = { bytes: 0 }
    const whole = new Promise<void>((resolve, reject) => {
      exchange.read({
        data: (piece) => {
          got.bytes += piece.byteLength
          exchange.pause()
        },
        end: resolve,
        left: () => reject(new Error('the client has left')),
      })
    })
    while (got.bytes === 0) await nextTurn()
    for (let turn = 0; turn < 100; turn += 1) await nextTurn()
    t.ok(got.bytes <= 2 ** 18, `${got.bytes} bytes of 16 MiB while it is paused`)
    const timer = setInterval(() => exchange.resume(), 1)
    await whole
    clearInterval(timer)
    t.equal(got.bytes, body.length)
    answerText(exchange, 'all')
    await client.until('all')
    client.write('GET /next HTTP/1.1\r\n\r\n')
    answerText(await take(), 'next')
    await client.until('next')
    client.socket.end()
  },
)

await t.test('an answer while the reader is paused lets the next request come', async (t) => {
  const { port, take } = await startByHand(t)
  const client = await openClient(port)
  client.write(`POST / HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n${'x'.repeat(1000)}`)
  const exchange = await take()
  exchange.read(toReader([]))
  exchange.pause()
  answerText(exchange, 'early')
  await client.until('early')
  client.write(`${'x'.repeat(999_000)}GET /next HTTP/1.1\r\n\r\n`)
  t.equal((await take()).head.target, '/next')
  client.socket.destroy()
})

await t.test(
  'a client that asks whether to send its body is told so when it is read',
  async (t) => {
    const { port, take } = await startByHand(t)
    const client = await openClient(port)
    client.write(`${POST}expect: 100-continue\r\n\r\n`)
    const exchange = await take()
    for (let turn = 0; turn < 5; turn += 1) await nextTurn()
    t.equal(client.soFar(), '', 'not before')
    readWhole(exchange, (body) => answerText(exchange, body))
    await client.until('HTTP/1.1 100 Continue\r\n\r\n')
    client.write('hello')
    t.match(await client.until('hello'), /keep-alive/)
    client.write(`${POST}expect: 100-continue\r\n\r\n`)
    answerText(await take(), 'no')
    const refused = (await client.all).split('hello')[1] ?? ''
    t.match(
      refused,
      /^HTTP\/1\.1 200 OK\r\n[^]*connection: close\r\n[^]*no$/,
      'and else the connection ends',
    )
    const early = await openClient(port)
    early.write(`${POST}expect: 100-continue\r\n\r\nhello`)
    const unasked = await take()
    while (!unasked.isWhole) await nextTurn()
    readWhole(unasked, (body) => answerText(unasked, body))
    t.notMatch(await early.until('hello'), '100 Continue', 'nor one that does not wait')
    early.socket.end()
    const old = await openClient(port)
    old.write('POST / HTTP/1.0\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n')
    const of10 = await take()
    readWhole(of10, (body) => answerText(of10, body))
    old.write('hello')
    t.match(await old.all, /^HTTP\/1\.1 200 /, 'nor HTTP/1.0')
  },
)

await t.test('answers without a body have none, and tell how long it would be', async (t) => {
  const { port, take } = await startByHand(t)
  const client = await openClient(port)
  client.write('HEAD / HTTP/1.1\r\n\r\n')
  answerText(await take(), 'hello')
  t.match(await client.until('\r\n\r\n'), /content-length: 5\r\n\r\n$/)
  client.write('HEAD / HTTP/1.1\r\n\r\n')
  const streamed = await take()
  streamed.begin({ status: 200, headers: {} })
  await streamed.write([Buffer.from('hello')])
  streamed.end()
  t.match(await client.until('\r\n\r\n', 2), /\r\n\r\n$/)
  for (const [i, status] of [204, 304].entries()) {
    client.write('GET / HTTP/1.1\r\n\r\n')
    answerText(await take(), 'hello', status)
    t.match(await client.until('\r\n\r\n', 3 + i), /HTTP\/1\.1 [23]04 [^]*\r\n\r\n$/)
  }
  t.notMatch(client.soFar().split('HTTP/1.1 204')[1], 'content-length')
  client.write('GET / HTTP/1.1\r\nconnection: close\r\n\r\n')
  answerText(await take(), 'last')
  t.equal((await client.all).split('HTTP/1.1 ').length, 6)
})

const PARTS = [['one'], [], ['', 'two', ''], [''], ['x'.repeat(20_000)]]

/** Sends a request, answers it in parts, and returns all that comes. */
async function stream(t: Test, head: string): Promise<string> {
  const { port, take } = await startByHand(t)
  const client = await openClient(port)
  client.write(`${head}\r\n\r\n`)
  const exchange = await take()
  exchange.begin({ status: 200, headers: { 'x-y': 'z' } })
  for (const parts of PARTS) await exchange.write(parts.map((part) => Buffer.from(part)))
  exchange.end()
  return await client.all
}

await t.test(
  'an answer of unknown length goes out in chunks, or until the connection ends',
  async (t) => {
    const chunked = await stream(t, 'GET / HTTP/1.1\r\nconnection: close')
    t.match(chunked, 'transfer-encoding: chunked\r\n\r\n')
    const body = `3\r\none\r\n3\r\ntwo\r\n4e20\r\n${'x'.repeat(20_000)}\r\n0\r\n`
    t.equal(chunked.slice(chunked.indexOf('\r\n\r\n') + 4), `${body}\r\n`)
    for (const fields of ['', '\r\nconnection: keep-alive']) {
      const plain = await stream(t, `GET / HTTP/1.0${fields}`)
      t.match(plain, /connection: close\r\n\r\nonetwox+$/, 'although it asks to stay')
      t.notMatch(plain, 'transfer-encoding')
    }
  },
)

await t.test('HTTP/1.0 stays if it asks for that', async (t) => {
  const { port } = await startHttp1(t)
  const once10 = await openClient(port)
  once10.write('GET /a HTTP/1.0\r\n\r\nGET /b HTTP/1.0\r\n\r\n')
  t.equal(bodyOf(await once10.all), '/a ')
  const twice = await openClient(port)
  twice.write('GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n')
  t.match(await twice.until('/a '), /connection: keep-alive\r\n/)
  twice.write('GET /b HTTP/1.0\r\n\r\n')
  t.match(await twice.all, /\/b $/)
})

await t.test(
  'a large answer reaches a client that reads slowly, although the connection ends with it',
  async (t) => {
    const { port } = await startHttp1(t, (exchange) => {
      const part = Buffer.alloc(2 ** 20, 'x')
      exchange.answer({ status: 200, headers: {} }, Array(16).fill(part), 2 ** 24)
    })
    const client = await openClient(port)
    client.socket.pause()
    client.write('GET / HTTP/1.1\r\nconnection: close\r\n\r\nmore that is not read')
    await new Promise((resolve) => setTimeout(resolve, 200))
    client.socket.resume()
    t.equal(bodyOf(await client.all)?.length, 2 ** 24)
  },
)

await t.test('a write that fails is no answer', async (t) => {
  const { port, take } = await startByHand(t)
  const client = await openClient(port)
  client.write('GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n')
  const exchange = await take()
  const over = new Promise((resolve) => exchange.whenOver(resolve))
  client.socket.resetAndDestroy()
  await once(client.socket, 'close')
  answerText(exchange, 'x'.repeat(1000))
  t.equal(await over, false)
})

await t.test('text that would end a line of the head is a bug that shows', async (t) => {
  const { port, take } = await startByHand(t)
  const client = await openClient(port)
  client.write('GET / HTTP/1.1\r\n\r\n')
  const exchange = await take()
  for (const [name, value] of [
    ['x', 'a\r\nb: c'],
    ['x', 'a\nb'],
    ['x', '\0'],
    ['x', '\u0100'],
    ['x', '\u560a'],
    ['x\r\ny', 'a'],
    ['x y', 'a'],
    ['', 'a'],
    ['\u010d', 'a'],
  ] as const) {
    t.throws(() => exchange.setHeader(name, value), TypeError)
    const head = { status: 200, headers: { [name]: value } }
    t.throws(() => exchange.answer(head, [], 0), TypeError)
    t.throws(() => exchange.begin(head), TypeError)
  }
  t.notOk(exchange.hasAnswered)
  answerText(exchange, 'still answered')
  await client.until('still answered')
  client.socket.end()
})
