import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { unzipSync } from 'node:zlib'
import { LoopTurns } from '@tutti/chassis'
import { testFactor } from '@tutti/chassis/testing'
import { Admission } from '@tutti/serving'
import type { NamedTensor } from '@tutti/tensor'
import { Lender } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { startRestServer } from '../rest-server.ts'
import { createRestBackend, response } from '../testing/rest-backend.ts'
import { encodeReply } from './content-encoding.ts'

t.setTimeout(120_000 * testFactor())

/** Milliseconds that no input may make the loop take in one turn. Processor time of its thread alone: other load does not count. */
const MAX_TURN_MS = 100
const NUMBERS = 1_000_000
const y: NamedTensor = {
  name: 'y',
  datatype: 'UINT8',
  shape: [NUMBERS],
  data: new Uint8Array(NUMBERS).fill(200),
}
const TEXT_BYTES = NUMBERS * '200,'.length

/** A model that answers a few bytes with a million numbers, counts them, and says in which turn of the loop it made a part. */
async function serveNumbers(t: Test, maxBytes: number) {
  const backend = createRestBackend({
    infer: async function* () {
      yield response([y])
    },
  })
  const admission = new Admission({ maxBytes })
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, admission })
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${server.port}/v2`
  const infer = (signal?: AbortSignal) =>
    fetch(`${url}/models/echo/infer`, {
      method: 'POST',
      body: '{"inputs":[]}',
      ...(signal && { signal }),
    })
  return { url, admission, infer }
}

await t.test('large answers are made a part in a turn, all of them together', async (t) => {
  const turns = new LoopTurns()
  let now = 0
  let isDone = false
  const count = (): void => {
    now += 1
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  const seen: number[] = []
  const answers = Array.from({ length: 5 }, async () => {
    for (let i = 0; i < 20; i++) {
      await turns.next()
      seen.push(now)
    }
  })
  await Promise.all(answers)
  isDone = true
  t.equal(new Set(seen).size, 100, 'no turn had two')
})

await t.test('a large JSON answer is whole, and health answers meanwhile', async (t) => {
  const { url, infer, admission } = await serveNumbers(t, 2 ** 30)
  const answers: Response[] = []
  const answer = infer().then(async (got) => {
    answers.push(got)
    return got.text()
  })
  let asked = 0
  while (answers.length === 0) {
    const got = await fetch(`${url}/health/live`)
    t.equal(got.status, 200)
    asked += 1
  }
  t.ok(asked > 3, `${asked} answers meanwhile`)
  const numbers = (await answer).match(/200/g)
  t.equal(numbers?.length, NUMBERS)
  while (admission.bytes > 0) await nextTurn()
})

await t.test('its bytes count as they are made, and so do the outputs meanwhile', async (t) => {
  for (const maxBytes of [NUMBERS + 200_000, NUMBERS + TEXT_BYTES - 1000]) {
    const { infer, admission } = await serveNumbers(t, maxBytes)
    const got = await infer()
    t.equal(got.status, 503)
    t.equal(got.headers.get('tutti-error-reason'), 'OVERLOADED')
    await got.arrayBuffer()
    while (admission.bytes > 0) await nextTurn()
    t.equal(admission.requests, 0)
  }
})

await t.test('an answer whose client has left is not made further', async (t) => {
  const { infer, admission } = await serveNumbers(t, 2 ** 30)
  const leaving = new AbortController()
  const asked = infer(leaving.signal)
  while (admission.bytes < NUMBERS) await nextTurn()
  leaving.abort()
  await t.rejects(asked)
  while (admission.bytes > 0) await nextTurn()
  t.equal(admission.requests, 0)
})

/** Sends bodies, each after the one before, from a thread of its own. */
const CLIENT = `
const { parentPort, workerData } = require('node:worker_threads')
parentPort.on('message', async (body) => {
  const got = await fetch(workerData, { method: 'POST', body })
  await got.arrayBuffer()
  parentPort.postMessage(got.status)
})`

/** The longest turn of the loop until `work` is done, in milliseconds of this thread's processor time. */
async function longestTurn(work: Promise<unknown>): Promise<number> {
  const ends: unknown[] = []
  void work.finally(() => ends.push(true))
  let longest = 0
  let before = process.threadCpuUsage()
  while (ends.length === 0) {
    await nextTurn()
    const used = process.threadCpuUsage()
    longest = Math.max(longest, used.user + used.system - before.user - before.system)
    before = used
  }
  return longest / 1000
}

await t.test('an answer of many parts is compressed without taking the loop long', async (t) => {
  const part = new Uint8Array(2 ** 22)
  const parts = Array.from({ length: 64 }, () => part)
  const byteLength = parts.length * part.byteLength
  for (const encoding of ['gzip', 'deflate'] as const) {
    const turns: number[] = []
    const encode = async () => {
      const encoded = encodeReply({ status: 200, headers: {}, parts, byteLength }, encoding)
      turns.push(await longestTurn(encoded))
      return await encoded
    }
    const reply = await encode()
    // Once it may be the collector's turn that is long; a loop that compresses is long each time.
    for (let i = 0; i < 2 && Math.min(...turns) > MAX_TURN_MS; i += 1) await encode()
    t.ok(Math.min(...turns) <= MAX_TURN_MS, `${turns.join(', ')} ms`)
    t.match(reply.headers, { 'content-encoding': encoding })
    const sizes = reply.parts.map((one) => one.byteLength)
    t.equal(
      reply.byteLength,
      sizes.reduce((sum, size) => sum + size, 0),
    )
    const unpacked = unzipSync(Buffer.concat(reply.parts))
    t.equal(unpacked.byteLength, byteLength)
  }
})

const ITEMS = {
  UINT8: fc.constantFrom('7', '255', '[1]'),
  INT64: fc.constantFrom('-1', '9007199254740993'),
  FP32: fc.constantFrom('0.1', '1e30', '[[0]]'),
  BOOL: fc.constantFrom('true', 'false'),
  BYTES: fc.oneof(
    fc.constantFrom('""', String.raw`"\u0001"`),
    fc.integer({ min: 1, max: 2 ** 20 }).map((length) => `"${'é'.repeat(length)}"`),
  ),
}
const NONSENSE = fc.oneof(
  fc.constantFrom('null', '{}', '[]', '1e999', '-'),
  fc.integer({ min: 1, max: 200 }).map((depth) => '['.repeat(depth) + ']'.repeat(depth)),
)

function bodyOf(datatype: keyof typeof ITEMS) {
  return fc
    .record({
      item: fc.oneof({ weight: 4, arbitrary: ITEMS[datatype] }, NONSENSE),
      bytes: fc.integer({ min: 1, max: 2 ** 22 }),
      member: fc.oneof(
        { weight: 4, arbitrary: fc.constant('data') },
        fc.constantFrom('shape', 'parameters', 'name'),
      ),
    })
    .map(({ item, bytes, member }) => {
      const count = Math.max(1, Math.floor(bytes / (item.length + 1)))
      const list = `[${`${item},`.repeat(count - 1)}${item}]`
      const input = { name: '"x"', datatype: `"${datatype}"`, shape: `[${count}]`, data: list }
      const members = Object.entries({ ...input, [member]: list })
      return `{"inputs":[{${members.map(([key, value]) => `"${key}":${value}`).join(',')}}]}`
    })
}

/** Bodies of up to 4 MiB for a model that answers what it is asked: of few or many, long or nested values, some of them wrong. */
const bodies = fc.constantFrom('UINT8', 'INT64', 'FP32', 'BOOL', 'BYTES').chain(bodyOf)

await t.test('no body makes the loop take long over it or its answer', async (t) => {
  const server = await startRestServer({
    backend: createRestBackend(),
    address: '127.0.0.1',
    port: 0,
  })
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${server.port}/v2/models/echo/infer`
  const client = new Worker(CLIENT, { eval: true, workerData: url })
  t.teardown(() => client.terminate())
  const send = (body: string): Promise<number> => {
    const status = new Promise<number>((resolve) => client.once('message', resolve))
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    client.postMessage(body)
    return status
  }
  const statuses = new Map<number, number>()
  let worst = 0
  await fc.assert(
    fc.asyncProperty(bodies, async (body) => {
      let turnMs = Infinity
      // A machine under load makes a turn long now and then, a body that is worked on at once each time.
      for (let i = 0; i < 3 && turnMs > MAX_TURN_MS; i++) {
        const status = send(body)
        turnMs = Math.min(turnMs, await longestTurn(status))
        const code = await status
        statuses.set(code, (statuses.get(code) ?? 0) + 1)
      }
      worst = Math.max(worst, turnMs)
      return turnMs <= MAX_TURN_MS
    }),
    { numRuns: 15, examples: [['{"inputs":[]}'], ['{"inputs":[']] },
  )
  t.comment(`the longest turn took ${worst} ms`, Object.fromEntries(statuses))
  t.ok(statuses.has(200) && statuses.has(500), 'some are answered, some refused')
})

await t.test('a binary answer has bytes of its own where outputs are lent', async (t) => {
  const lender = new Lender()
  const backend = createRestBackend({
    infer: async function* () {
      const { tensors, retain, end } = lender.lend([y])
      try {
        yield { ...response(tensors), retain }
      } finally {
        end()
      }
    },
  })
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0 })
  t.teardown(() => server.close())
  const got = await fetch(`http://127.0.0.1:${server.port}/v2/models/echo/infer`, {
    method: 'POST',
    body: '{"inputs":[],"parameters":{"binary_data_output":true}}',
  })
  const answer = Buffer.from(await got.arrayBuffer())
  t.ok(answer.subarray(-NUMBERS).equals(y.data))
  t.equal(lender.open, 0)
})
