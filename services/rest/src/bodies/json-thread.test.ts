import { randomUUID } from 'node:crypto'
import { systemClock } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { emptyModelConfig } from '@tutti/model-config'
import { Admission } from '@tutti/serving'
import t, { type Test } from 'tap'
import { startRestServer } from '../rest-server.ts'
import { createRestBackend } from '../testing/rest-backend.ts'
import { BODY_PARSERS, type BodyKind, type BodySource } from './body-parsers.ts'
import { JSON_DEFAULTS, JsonThread, MAX_LOOP_JSON_BYTES } from './json-thread.ts'

t.setTimeout(60_000)

const MEBIBYTE = 1024 * 1024
const { signal: never } = new AbortController()
/** A connection of its own for each. */
const caller = (signal = never) => ({
  signal,
  connection: randomUUID(),
  admission: new Admission(),
})

function openThread(
  t: Test,
  o: Partial<ConstructorParameters<typeof JsonThread>[0]> = {},
): JsonThread {
  const thread = new JsonThread({ ...JSON_DEFAULTS, clock: systemClock, ...o })
  t.teardown(() => thread.close())
  return thread
}

function inferText(data: string, count: number, more = ''): string {
  return `{"id":"7",${more}"inputs":[{"name":"x","datatype":"INT64","shape":[${count}],"data":${data}}]}`
}

function flat(count: number): BodySource {
  return { body: Buffer.from(flatText(count)) }
}

function flatText(count: number): string {
  return inferText(`[${'7,'.repeat(count - 1)}9007199254740993]`, count)
}

/** Records the length of every text that this thread parses as JSON. */
function watchParsing(t: Test): readonly number[] {
  const lengths: number[] = []
  const { parse } = JSON
  JSON.parse = (text, ...more) => {
    lengths.push(text.length)
    return parse(text, ...more)
  }
  t.teardown(() => {
    JSON.parse = parse
  })
  return lengths
}

async function outcome(work: () => unknown): Promise<unknown> {
  try {
    return await work()
  } catch (error) {
    const { reason, code, message, details } = ServeError.from(error)
    return { reason, code, message, details }
  }
}

async function serveEcho(t: Test): Promise<string> {
  const backend = createRestBackend({ isDecoupled: false })
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  return `http://127.0.0.1:${server.port}/v2`
}

await t.test('a server parses no large body on its own thread', async (t) => {
  const url = await serveEcho(t)
  const lengths = watchParsing(t)
  const paths = ['models/echo/infer', 'repository/index', 'repository/models/echo/load']
  const padding = `"pad":"${'x'.repeat(MEBIBYTE)}",`
  for (const path of [...paths, 'repository/models/echo/unload']) {
    const body = inferText('[1]', 1, padding)
    const got = await fetch(`${url}/${path}`, { method: 'POST', body })
    await got.arrayBuffer()
  }
  const longest = Math.max(0, ...lengths)
  t.ok(longest <= MAX_LOOP_JSON_BYTES, `the longest text is ${longest}`)
})

await t.test('health answers while a large body is parsed', async (t) => {
  const url = await serveEcho(t)
  const answers: string[] = []
  const options = { method: 'POST', body: inferText(`[${'[],'.repeat(2 ** 20)}1]`, 1) }
  const infer = fetch(`${url}/models/echo/infer`, options).then((got) => {
    answers.push(got.statusText)
    return got.text()
  })
  let asked = 0
  while (answers.length === 0) {
    const got = await fetch(`${url}/health/live`)
    t.equal(got.status, 200)
    asked += 1
  }
  t.match(await infer, '"outputs"')
  t.ok(asked > 3, `${asked} answers meanwhile`)
})

await t.test(
  'tensors come over without a copy, binary ones in the memory of the body',
  async (t) => {
    const thread = openThread(t)
    const json = Buffer.from(
      `{"pad":"${'x'.repeat(MEBIBYTE)}","inputs":[` +
        '{"name":"a","datatype":"UINT8","shape":[3],"parameters":{"binary_data_size":3}},' +
        '{"name":"b","datatype":"UINT8","shape":[2],"data":[4,5]}]}',
    )
    const body = Buffer.concat([json, Buffer.from([1, 2, 3])])
    const headerLength = String(json.byteLength)
    const { inputs } = await thread.parse('infer', { body, headerLength }, caller())
    t.same(
      inputs.map(({ data }) => [...data]),
      [
        [1, 2, 3],
        [4, 5],
      ],
    )
    t.equal(inputs[0]?.data.buffer.byteLength, json.byteLength + 3)
    t.equal(body.byteLength, 0, 'the body is gone')
  },
)

await t.test('a body that is deeper than any request is refused before it is parsed', async (t) => {
  const lengths = watchParsing(t)
  const url = await serveEcho(t)
  const body = inferText(`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 1)
  const got = await fetch(`${url}/models/echo/infer`, { method: 'POST', body })
  t.equal(got.status, 500)
  t.match(await got.text(), /nested too deeply: more than 128 objects and arrays/)
  t.ok(Math.max(0, ...lengths) < 1000)
})

await t.test('a body whose caller has left is not parsed', async (t) => {
  const thread = openThread(t)
  const gone = new AbortController()
  const first = thread.parse('infer', { body: Buffer.from(flatText(500_000)) }, caller())
  const body = Buffer.from(flatText(500_000))
  const second = Promise.resolve(thread.parse('infer', { body }, caller(gone.signal)))
  gone.abort(new ServeError('CANCELLED', 'gone'))
  await t.rejects(second, { reason: 'CANCELLED', message: 'gone' })
  t.ok(body.byteLength > 0, 'it was not sent')
  t.equal((await first).inputs.length, 1)
})

await t.test(
  'a thread that ends fails its body, and the next one has another thread',
  async (t) => {
    const thread = openThread(t)
    const body = Buffer.from(flatText(1_000_000))
    const failed = Promise.resolve(thread.parse('infer', { body }, caller()))
    await new Promise((resolve) => setImmediate(resolve))
    await thread.close()
    await t.rejects(failed, { reason: 'SERVER_STOPPING', message: 'Server exiting' })
    const { inputs } = await thread.parse(
      'infer',
      { body: Buffer.from(flatText(200_000)) },
      caller(),
    )
    t.equal(inputs[0]?.data.byteLength, 1_600_000)
  },
)

/** Numbers that are the same in each run. */
function* numbers(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    yield state / 2 ** 32
  }
}

await t.test(
  'whatever a body holds, the thread reads in it what the loop would read',
  async (t) => {
    const thread = openThread(t)
    const lengths = watchParsing(t)
    const random = numbers(11)
    const next = (below: number) => Math.floor((random.next().value ?? 0) * below)
    const kinds = ['infer', 'infer', 'load', 'unload', 'index'] as const
    for (let round = 0; round < 16; round += 1) {
      const kind: BodyKind = kinds[next(kinds.length)] ?? 'infer'
      const body = Buffer.from(generated(next))
      const cut = next(6) === 0 ? body.subarray(0, next(body.byteLength)) : body
      const source: BodySource = {
        body: cut,
        modelName: 'echo',
        config: emptyModelConfig('echo'),
        ...(kind === 'infer' && next(4) === 0
          ? { headerLength: String(next(2 * cut.byteLength)) }
          : {}),
      }
      const want = await outcome(() => BODY_PARSERS[kind]({ ...source, body: Buffer.from(cut) }))
      const before = lengths.length
      const got = await outcome(() => thread.parse(kind, source, caller()))
      t.same(got, want, `${kind} ${cut.byteLength} bytes`)
      t.ok(Math.max(0, ...lengths.slice(before)) <= MAX_LOOP_JSON_BYTES)
    }
  },
)

/** A document around the size from which on the thread reads it. */
function generated(next: (below: number) => number): string {
  const size = MAX_LOOP_JSON_BYTES / 4 + next(MAX_LOOP_JSON_BYTES * 3)
  const depth = 1 + next(140)
  const item = [
    '7,',
    '-9007199254740993,',
    '1.5,',
    '[],',
    '{},',
    `"${'x'.repeat(next(1000))}",`,
    `${'['.repeat(depth)}${']'.repeat(depth)},`,
  ][next(7)]
  const count = Math.ceil(size / (item?.length ?? 1))
  const list = `[${item?.repeat(count)}1]`
  const member = ['"pad":', '"parameters":', '"outputs":'][next(3)] ?? ''
  return next(2) === 0 ? inferText(list, count + 1) : inferText('[1]', 1, `${member}${list},`)
}

await t.test('what parsing takes is counted, and bounded', async (t) => {
  const thread = openThread(t, { maxJsonValues: 200_000 })
  const admission = new Admission({ maxBytes: 2 ** 22 })
  const parse = async (count: number) =>
    thread.parse('infer', flat(count), { ...caller(), admission })
  await t.rejects(parse(300_000), {
    reason: 'MESSAGE_TOO_LARGE',
    message: /holds 300\d\d\d values, want at most 200000 \(--http-max-json-values\)/,
  })
  await t.rejects(parse(190_000), { message: /server is overloaded/ })
  t.equal(admission.bytes, 0)
  const { inputs } = await thread.parse('infer', flat(190_000), caller())
  t.equal(inputs[0]?.data.byteLength, 8 * 190_000, 'the next one is parsed')
})

await t.test('what takes too long is given up, and the next one is parsed', async (t) => {
  const thread = openThread(t, { jsonTimeoutMs: 20 })
  const slow = Promise.resolve(
    thread.parse('infer', { body: Buffer.from(flatText(1_000_000)) }, caller()),
  )
  await t.rejects(slow, {
    reason: 'MESSAGE_TOO_LARGE',
    message: /takes more than 20 ms of processor time to parse \(--http-json-timeout-secs\)/,
  })
  const small = { body: Buffer.from('{"inputs":[]}') }
  t.same((await thread.parse('infer', small, caller())).inputs, [])
})

await t.test('a body for which there is no place leaves no timer behind', async (t) => {
  const clock = createManualClock()
  const thread = openThread(t, { clock })
  const admission = new Admission({ maxRequests: 1 })
  admission.open().enter()
  const refused = await outcome(() =>
    thread.parse('infer', flat(200_000), { ...caller(), admission }),
  )
  t.match(refused, { reason: 'OVERLOADED' })
  t.equal(clock.pending, 0)
  await thread.parse('infer', flat(200_000), caller())
  t.equal(clock.pending, 0)
})

await t.test('parsing waits for no client: no other call ends for its memory', async (t) => {
  const thread = openThread(t)
  const admission = new Admission({ maxWaitingBytes: 2 ** 20 })
  const ended: string[] = []
  const half = admission.open().belongTo({
    movedBytes: 0,
    endWaiting: (error) => void ended.push(error.message),
  })
  half.charge(1000)
  await thread.parse('infer', flat(200_000), { ...caller(), admission })
  t.same(ended, [])
  t.equal(admission.bytes, 1000)
})
