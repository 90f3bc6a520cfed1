import { setImmediate as nextTurn } from 'node:timers/promises'
import { ServeError } from '@tutti/errors'
import { modelInput } from '@tutti/model-config/testing'
import { Admission } from '@tutti/serving'
import type { ModelScript } from '@tutti/serving/testing'
import { encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { startRestServer } from '../rest-server.ts'
import { openRaw } from '../testing/raw-http.ts'
import { createRestBackend, response } from '../testing/rest-backend.ts'

const CONFIG = { input: [modelInput('text', 'TYPE_STRING', [1])] }
const NOT_ONE = { error: /^generate expects model to produce exactly 1 response, / }

function word(value: string): NamedTensor {
  return {
    name: 'y',
    datatype: 'BYTES',
    shape: [1],
    data: encodeBytesTensor([Buffer.from(value)]),
  }
}

interface Setup {
  readonly isDecoupled?: boolean
  readonly admission?: Admission
  readonly writeTimeoutMs?: number
}

async function start(t: Test, infer: ModelScript, o: Setup = {}) {
  const { isDecoupled = true, ...rest } = o
  const backend = createRestBackend({ infer, config: CONFIG, isDecoupled })
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, ...rest })
  t.teardown(() => server.close())
  const ask = (path: string, body: object = { text: 'hi' }) =>
    fetch(`http://127.0.0.1:${server.port}/v2/models/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
  return { backend, server, ask }
}

/** Gives the words one after the other; `!` is an error. */
function words(...list: readonly string[]): ModelScript {
  return async function* () {
    for (const value of list) {
      if (value === '!') throw new ServeError('ENGINE_FAILED', 'the model failed')
      yield response([word(value)], { final: false })
    }
    yield response([])
  }
}

await t.test('a request of named inputs gets one flat answer', async (t) => {
  const { ask, backend } = await start(t, async function* () {
    yield response([word('a')])
  })
  const got = await ask('echo/versions/1/generate', { id: 'r', text: 'hi', max_tokens: 5 })
  t.equal(got.status, 200)
  t.equal(got.headers.get('content-type'), 'application/json')
  t.equal(await got.text(), '{"id":"r","model_name":"echo","model_version":"1","y":"a"}')
  const [{ request, version } = { request: undefined, version: 0 }] = backend.requests
  t.equal(version, 1)
  t.same(request?.inputs[0]?.shape, [1])
  t.same(request?.context.parameters.get('max_tokens'), { kind: 'int64', value: 5n })
  const unknown = await ask('none/generate')
  t.equal(unknown.status, 404)
  const refused = await ask('echo/generate_stream', { text: ['a', 'b'] })
  t.equal(refused.status, 400)
  t.equal(refused.headers.get('content-type'), 'application/json')
})

await t.test('generate wants one response, and says so with status 200', async (t) => {
  const rows = [
    [words(), 200, NOT_ONE],
    [words('a', 'b'), 200, NOT_ONE],
    [words('a', '!'), 200, NOT_ONE],
    [words('!'), 400, { error: 'the model failed' }],
    [words('a'), 200, { y: 'a' }],
  ] as const
  for (const [script, status, body] of rows) {
    const { ask } = await start(t, script)
    const got = await ask('echo/generate')
    t.equal(got.status, status)
    t.equal(got.headers.get('content-type'), 'application/json')
    t.match(await got.json(), body)
  }
  // Beyond the first response of such a model nothing counts.
  const { ask } = await start(t, words('a', 'b'), { isDecoupled: false })
  t.match(await (await ask('echo/generate')).json(), { y: 'a' })
})

await t.test(
  'what the model fails with keeps its own status if it may be tried again',
  async (t) => {
    const { ask } = await start(t, async function* () {
      yield* []
      throw new ServeError('STEP_UNAVAILABLE', 'gone for now')
    })
    t.equal((await ask('echo/generate')).status, 503)
  },
)

function event(value: string): string {
  return `data: {"model_name":"echo","model_version":"3","y":"${value}"}\n\n`
}

await t.test('a stream has an event for each response, an error among them', async (t) => {
  const rows = [
    [words('a', 'b'), 200, event('a') + event('b')],
    [words(), 200, ''],
    [words('a', '!'), 200, `${event('a')}data: {"error":"the model failed"}\n\n`],
    [words('!'), 400, 'data: {"error":"the model failed"}\n\n'],
  ] as const
  for (const [script, status, text] of rows) {
    const { ask } = await start(t, script)
    const got = await ask('echo/generate_stream')
    t.equal(got.status, status)
    t.equal(got.headers.get('content-type'), 'text/event-stream; charset=utf-8')
    t.equal(await got.text(), text)
  }
})

const ASK = JSON.stringify({ text: 'hi' })
const HEAD = `POST /v2/models/echo/generate_stream HTTP/1.1\r\nhost: x\r\ncontent-length: ${ASK.length}\r\n\r\n${ASK}`
const CHUNK = 'x'.repeat(1024 * 1024)

/** A model that gives a mebibyte again and again, until its client leaves. */
function endless() {
  const state = { given: 0, isOver: false }
  const script: ModelScript = async function* (_, { signal }) {
    try {
      while (!signal.aborted) {
        state.given += 1
        yield response([word(CHUNK)], { final: false })
        await nextTurn()
      }
    } finally {
      state.isOver = true
    }
  }
  return { state, script }
}

await t.test('a reader that stops makes the model wait; one that leaves ends it', async (t) => {
  const { state, script } = endless()
  const admission = new Admission()
  const { server } = await start(t, script, { admission })
  const client = await openRaw(server.port)
  client.write(HEAD)
  await client.until('data: ')
  client.socket.pause()
  let last = -1
  // As long as it goes on it gives something within so many turns.
  for (let quiet = 0; quiet < 500; quiet++) {
    await nextTurn()
    if (state.given !== last) quiet = 0
    last = state.given
  }
  t.ok(last < 64, `${last} MiB are out or in sockets`)
  t.ok(admission.bytes < 8 * 1024 * 1024, `${admission.bytes} bytes are held`)
  t.equal(admission.requests, 1)
  t.notOk(state.isOver)
  client.socket.destroy()
  while (!state.isOver || admission.requests > 0) await nextTurn()
  t.equal(admission.bytes, 0)
})

await t.test('a reader that stops for too long is cut off', async (t) => {
  const { state, script } = endless()
  const { server } = await start(t, script, { writeTimeoutMs: 50 })
  const client = await openRaw(server.port)
  client.write(HEAD)
  await client.until('data: ')
  client.socket.pause()
  while (!state.isOver) await nextTurn()
  client.socket.destroy()
})

/** Gives one response, and then nothing until its client leaves. */
const waits: ModelScript = async function* (_, { signal }) {
  yield response([word('a')], { final: false })
  await new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  throw signal.reason
}

await t.test('a server that stops ends its streams with an event', async (t) => {
  const { server, ask } = await start(t, waits)
  const got = await ask('echo/generate_stream')
  const text = got.text()
  const closed = server.close()
  t.match(await text.catch(() => 'cut'), /cut|data: {"error":"Server exiting"}\n\n$/)
  await closed
})

await t.test('responses beyond the bound of bytes end the stream with an event', async (t) => {
  const admission = new Admission({ maxBytes: 1024 * 1024 })
  const { ask } = await start(t, words('a', CHUNK), { admission })
  const text = await (await ask('echo/generate_stream')).text()
  t.match(text, /"y":"a"}\n\ndata: {"error":".*in flight.*"}\n\n$/)
  t.equal(admission.bytes, 0)
})
