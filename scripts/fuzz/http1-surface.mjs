import assert from 'node:assert/strict'
import { HttpFault } from '../../services/http/dist/http1/http-fault.js'
import { Http1Connection } from '../../services/http/dist/http1/http1-connection.js'

const TIMES = { headersTimeoutMs: 1000, requestTimeoutMs: 1000, keepAliveMs: 1000 }

/**
 * Checks that what a client sends means the same however it is cut, that each request gets one answer, in order, and that the socket
 * is not left paused.
 */
export function runHttp1(input) {
  const whole = serveHttp1([input])
  const cut = input.length === 0 ? 0 : input[input.length - 1] % (input.length + 1)
  assert.deepEqual(serveHttp1([input.subarray(0, cut), input.subarray(cut)]), whole)
  if (input.length % 16 === 0 && input.length < 300) {
    assert.deepEqual(serveHttp1(Array.from(input, (_, at) => input.subarray(at, at + 1))), whole)
  }
  if (whole.fault !== undefined) throw new HttpFault(400, 'refused')
}

/** @returns the requests that a connection brought, what it answered, and how it ended. */
function serveHttp1(pieces) {
  const seen = { requests: [], sent: '', end: '', fault: undefined }
  const later = []
  const socket = {
    destroyed: false,
    errored: null,
    writable: true,
    writableLength: 0,
    isPaused: false,
    cork: () => {},
    uncork: () => {},
    write: (written, encoding) => (seen.sent += Buffer.from(written, encoding).toString('latin1')),
    pause: () => (socket.isPaused = true),
    resume: () => (socket.isPaused = false),
    end: () => (seen.end += 'end '),
    once: (_, callback) => later.push(callback),
    destroy: () => {
      socket.destroyed = true
      seen.end += 'destroyed '
    },
  }
  const handler = {
    request: (exchange) => seen.requests.push(serveExchange(exchange, later)),
    refusal: (fault) => {
      seen.fault = fault
      return { status: fault.status, headers: {}, parts: [] }
    },
  }
  const connection = new Http1Connection(socket, handler, TIMES)
  for (const piece of pieces) {
    while (socket.isPaused && later.length > 0) later.shift()()
    assert.ok(!socket.isPaused, 'the socket reads')
    // Nothing of it may be looked at after `receive`: the next read of a socket takes its place.
    const read = Buffer.from(piece)
    connection.receive(read)
    read.fill(0xaa)
  }
  while (later.length > 0) later.shift()()
  connection.close()
  assert.ok(!socket.isPaused, 'the socket reads')
  for (const { isWhole, isLeft, over } of seen.requests) {
    assert.equal(over, 1)
    assert.ok(!(isWhole && isLeft))
  }
  const statuses = [...seen.sent.matchAll(/HTTP\/1\.1 (?!100)(\d+)/g)].map(([, status]) => status)
  const answered = seen.requests.filter(({ isAnswered }) => isAnswered).map(() => '200')
  assert.deepEqual(statuses, [...answered, ...(seen.fault ? [String(seen.fault.status)] : [])])
  // Which one is found first depends on how they come, and so does how much of a body that breaks.
  for (const request of seen.requests) if (!request.isWhole) request.body = ''
  return { ...seen, fault: seen.fault && 'refused', sent: statuses.length }
}

/** Answers a request at once, with its body, or later. */
function serveExchange(exchange, later) {
  const seen = { head: exchange.head, body: '', isWhole: false, isLeft: false, over: 0 }
  const kind = exchange.head.target.length % 4
  const answer = () => {
    if (!exchange.isOver) exchange.answer({ status: 200, headers: {} }, [Buffer.of(120)], 1)
  }
  const read = () =>
    exchange.read({
      data: (piece) => {
        assert.ok(!seen.isWhole && !seen.isLeft)
        seen.body += piece.toString('latin1')
      },
      end: () => {
        seen.isWhole = true
        answer()
      },
      left: () => (seen.isLeft = true),
    })
  exchange.whenOver((isAnswered) => {
    seen.over += 1
    seen.isAnswered = isAnswered
  })
  // A later answer, without the body, comes before or behind what breaks in the body.
  if (kind === 0 || (kind === 3 && !exchange.isWhole)) answer()
  else if (kind === 1) read()
  else later.push(kind === 2 ? read : answer)
  return seen
}
