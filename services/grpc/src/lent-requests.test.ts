import { once } from 'node:events'
import { connect, constants } from 'node:http2'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { until } from '@tutti/chassis/testing'
import { encodeInferRequest, type OutgoingRequest } from '@tutti/protocol'
import type { InferStream } from '@tutti/protocol/client'
import { type ModelScript, response, type ScriptedModel } from '@tutti/serving/testing'
import type { InferRequest, NamedTensor } from '@tutti/tensor'
import { PoisonedMemory } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import { toFrame } from './methods/method.ts'
import { openTestServer, type TestServer } from './testing/test-server.ts'

const LARGE_BYTES = 65_536

function ask(sizes: readonly number[], seed = 1): OutgoingRequest {
  const inputs = sizes.map((size, i) => {
    const data = new Uint8Array(size).map((_, at) => (at * 7 + seed + i) % 200)
    return { name: `x${i}`, datatype: 'UINT8' as const, shape: [size], data }
  })
  return { modelName: 'm', inputs }
}

function isSame(outputs: readonly NamedTensor[], { inputs }: OutgoingRequest): boolean {
  return inputs.every(({ name, data }) => {
    const output = outputs.find((one) => one.name === name)
    return output !== undefined && Buffer.compare(output.data, data) === 0
  })
}

/** Bytes that no request has, but memory that was given back. */
function isPoisoned({ inputs }: InferRequest): boolean {
  return inputs.some(({ data }) => data.some((byte) => byte >= 200))
}

/** A model that answers with its inputs, after some turns of the loop; it looks at them until its end. */
function echoing(turns: () => number) {
  const state = { poisoned: 0, running: 0 }
  const script: ModelScript = async function* (request) {
    state.running += 1
    for (let i = turns(); i > 0; i -= 1) await nextTurn()
    if (isPoisoned(request)) state.poisoned += 1
    state.running -= 1
    yield response(request, request.inputs)
  }
  return { script, state }
}

async function settled({ memory, admission }: TestServer): Promise<void> {
  await until('all is given back', () => memory.open === 0 && admission.bytes === 0)
}

const size = fc.oneof(fc.nat({ max: 300 }), fc.integer({ min: LARGE_BYTES - 1, max: 300_000 }))
const requests = fc.array(fc.array(size, { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 6,
})

await t.test('tensors of any sizes are read where they came to, and given back', async (t) => {
  let turn = 0
  const { script, state } = echoing(() => turn++ % 5)
  const served = await openTestServer(t, { m: { script } })
  await fc.assert(
    fc.asyncProperty(requests, async (all) => {
      const asked = all.map(ask)
      const answers = await Promise.all(asked.map((one) => served.client.infer(one)))
      await settled(served)
      return answers.every(({ outputs }, i) => isSame(outputs, asked[i] ?? ask([])))
    }),
    { numRuns: 15 },
  )
  t.equal(state.poisoned, 0)
  t.ok(served.memory.taken > 0)
})

await t.test('so are those of a stream, decoupled or not', async (t) => {
  for (const isDecoupled of [false, true]) {
    let turn = 0
    const { script, state } = echoing(() => turn++ % 5)
    const served = await openTestServer(t, { m: { script, isDecoupled } })
    await fc.assert(
      fc.asyncProperty(requests, async (all) => {
        const stream = served.client.openStream()
        const asked = all.map((sizes, i) => ({ ...ask(sizes, i), id: String(i) }))
        for (const one of asked) await stream.send(one)
        stream.end()
        let right = 0
        for await (const { response: answer } of stream.responses()) {
          const one = asked[Number(answer?.id)]
          if (one !== undefined && isSame(answer?.outputs ?? [], one)) right += 1
        }
        await settled(served)
        return right === asked.length
      }),
      { numRuns: 10 },
    )
    t.equal(state.poisoned, 0)
  }
})

/** Resolves when the stream is over, whichever way. */
async function streamOne(stream: InferStream, asked: OutgoingRequest): Promise<void> {
  const read = async (): Promise<void> => {
    for await (const _ of stream.responses()) stream.end()
  }
  await Promise.allSettled([read(), stream.send(asked)])
}

await t.test('a model that is cancelled reads on what it was lent', async (t) => {
  const { script, state } = echoing(() => 300)
  const served = await openTestServer(t, { m: { script } })
  for (const isStream of [false, true]) {
    for (let i = 0; i < 10; i += 1) {
      const controller = new AbortController()
      const { signal } = controller
      const asked = ask([100_000 + i, 200_000], i)
      const outcome = isStream
        ? streamOne(served.client.openStream({ signal }), asked)
        : served.client.infer(asked, { signal }).catch(() => undefined)
      for (let turn = 0; turn < 40 * i; turn += 1) await nextTurn()
      controller.abort()
      await outcome
      await until('no model runs', () => state.running === 0)
      await settled(served)
    }
  }
  t.equal(state.poisoned, 0)
})

/** Sends the first bytes of a request. */
function send(served: TestServer, bytes: Buffer, headers: object = {}) {
  const session = connect(`http://${served.address}`)
  session.on('error', () => {})
  t.teardown(() => session.destroy())
  const stream = session.request({
    ':method': 'POST',
    ':path': '/inference.GRPCInferenceService/ModelInfer',
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  })
  stream.on('error', () => {})
  stream.resume()
  stream.write(bytes)
  return { session, stream }
}

/** Sends as much of a request that the server has memory for its tensors. */
async function begin(...args: Parameters<typeof send>): Promise<ReturnType<typeof send>> {
  const [served] = args
  const sent = send(...args)
  await until('the tensors have memory', () => served.memory.open > 0)
  return sent
}

const FRAME = toFrame(encodeInferRequest(ask([100_000, 300_000])))

await t.test('what a request has that does not come to its end is given back', async (t) => {
  const ends = ['reset', 'destroy', 'end', 'more'] as const
  for (const end of ends) {
    for (const cut of [80_000, 150_000, FRAME.byteLength]) {
      const served = await openTestServer(t, { m: {} })
      const { session, stream } = await begin(served, FRAME.subarray(0, cut))
      if (end === 'reset') stream.close(constants.NGHTTP2_CANCEL)
      else if (end === 'destroy') session.destroy()
      else if (end === 'end') stream.end()
      // A second message, of which there must be none.
      else stream.end(Buffer.concat([FRAME.subarray(cut), FRAME]))
      await settled(served)
      // Node ends what it resets.
      const mayRun = cut === FRAME.byteLength && (end === 'end' || end === 'reset')
      if (!mayRun) t.equal(served.backend.requests.length, 0)
    }
  }
})

await t.test('so is that of a request that is refused, or late', async (t) => {
  const refused: readonly (readonly [OutgoingRequest, ScriptedModel])[] = [
    [{ ...ask([100_000]), modelName: 'none' }, {}],
    [ask([100_000]), { isDecoupled: true }],
    [{ ...ask([100_000]), inputs: [...ask([100_000]).inputs, ...ask([3]).inputs] }, {}],
  ]
  for (const [asked, model] of refused) {
    const served = await openTestServer(t, { m: model })
    await t.rejects(served.client.infer(asked))
    await settled(served)
    t.ok(served.memory.taken > 0)
  }
  const served = await openTestServer(t, { m: {} })
  const late = begin(served, FRAME.subarray(0, 150_000), { 'grpc-timeout': '200m' })
  const { stream } = await late
  await once(stream, 'close')
  await settled(served)
})

await t.test('where memory is full, requests are served from ordinary memory', async (t) => {
  const memory = new PoisonedMemory((bytes) =>
    memory.open >= 2 ? undefined : { bytes: new Uint8Array(bytes), free: () => {} },
  )
  const { script, state } = echoing(() => 3)
  const served = await openTestServer(t, { m: { script } }, { memory })
  const asked = Array.from({ length: 8 }, (_, i) => ask([100_000, 70_000, 5, 90_000], i))
  const answers = await Promise.all(asked.map((one) => served.client.infer(one)))
  t.ok(answers.every(({ outputs }, i) => isSame(outputs, asked[i] ?? ask([]))))
  await until('all is given back', () => memory.open === 0)
  t.equal(state.poisoned, 0)
})

await t.test('a header that claims much takes no memory', async (t) => {
  const served = await openTestServer(t, { m: {} })
  // raw_input_contents of 200 MB, which stand in a message of 50.
  const frame = Buffer.from([0, 3, 0, 0, 0, 0xba, 0x03, 0x80, 0x84, 0xaf, 0x5f])
  const { session } = send(served, frame)
  await until('it came', () => served.admission.bytes > 0)
  t.equal(served.memory.open, 0)
  session.destroy()
  await settled(served)
})
