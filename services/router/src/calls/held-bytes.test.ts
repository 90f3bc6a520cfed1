import { equal } from 'node:assert/strict'
import { type ByteCount, ServeError } from '@tutti/errors'
import { responsesTo } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import {
  chain,
  collect,
  ensembleIo,
  failure,
  floats,
  oneToOne,
  quiet,
  request,
  type ScriptedModel,
  scriptedRouter,
  step,
} from '../testing/index.ts'
import { HeldBytes, type Holding } from './held-bytes.ts'

const LARGE = 100_000
const FLOATS = 25_000

/** Memory of a request, which notes the most that it had. */
class Pool implements ByteCount {
  bytes = 0
  most = 0
  readonly #max: number

  constructor(max = Number.POSITIVE_INFINITY) {
    this.#max = max
  }

  charge(bytes: number): void {
    if (bytes > 0 && this.bytes + bytes > this.#max)
      throw new ServeError('OVERLOADED', 'server is overloaded: too many bytes')
    this.bytes += bytes
    this.most = Math.max(this.most, this.bytes)
  }
}

await t.test('views of the same memory count once, and as long as one of them is held', (t) => {
  const pool = new Pool()
  const held = new HeldBytes(pool)
  const memory = new Uint8Array(3 * LARGE)
  const whole = held.hold(memory)
  const part = held.hold(memory.subarray(LARGE, 2 * LARGE))
  t.equal(pool.bytes, 3 * LARGE)
  held.release(whole)
  t.equal(pool.bytes, 3 * LARGE, 'a view keeps all of it')
  held.release(part)
  t.equal(pool.bytes, 0)
  const halves = [memory.subarray(0, LARGE), memory.subarray(LARGE, 2 * LARGE)]
  const apart = halves.map((half) => held.hold(half))
  t.equal(pool.bytes, 2 * LARGE, 'different parts count each')
  for (const each of apart) held.release(each)
  t.equal(pool.bytes, 0)
  t.end()
})

await t.test('what the request has counted does not count again', (t) => {
  const pool = new Pool()
  const held = new HeldBytes(pool)
  const input = new Uint8Array(LARGE)
  const own = held.holdOwn(input)
  const given = held.hold(input)
  t.equal(pool.bytes, 0)
  held.release(own)
  held.release(given)
  held.release(held.holdOwn(new Uint8Array(4)))
  t.equal(pool.bytes, 0)
  t.end()
})

await t.test(
  'in any order of tensors taken and given back, the memory in use is counted',
  async () => {
    const buffers = [new Uint8Array(2 * LARGE), new Uint8Array(LARGE)]
    const act = fc.record({
      buffer: fc.nat(1),
      at: fc.nat(1),
      release: fc.boolean(),
      which: fc.nat(),
    })
    fc.assert(
      fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
        const pool = new Pool()
        const held = new HeldBytes(pool)
        const open: { readonly holding: Holding; readonly key: string; readonly bytes: number }[] =
          []
        for (const { buffer, at, release, which } of acts) {
          if (release && open.length > 0) {
            const [out] = open.splice(which % open.length, 1)
            if (out !== undefined) held.release(out.holding)
          } else {
            // Parts that do not overlap, a small one among them.
            const data =
              buffers[buffer]?.subarray(at * LARGE, (at + 1) * LARGE) ?? new Uint8Array(0)
            const bytes = data.byteLength
            open.push({ holding: held.hold(data), key: `${buffer} ${at}`, bytes })
          }
          const parts = new Map(open.map(({ key, bytes }) => [key, bytes]))
          equal(
            pool.bytes,
            [...parts.values()].reduce((sum, bytes) => sum + bytes, 0),
          )
        }
        held.end()
        for (const { holding } of open) held.release(holding)
        equal(pool.bytes, 0)
      }),
      { numRuns: 300 },
    )
  },
)

const double: ScriptedModel = {
  config: oneToOne,
  run: (inputs) =>
    new Map([
      [
        'Y',
        floats(
          'Y',
          [...(inputs.get('X') ?? [])].map((x) => 2 * x),
        ),
      ],
    ]),
}
const nested = `${ensembleIo} ensemble_scheduling { ${step('three', 'IN', 'OUT', { names: ['IN', 'OUT'] })} }`
const ensembles = { three: chain('double', 'double', 'double'), nested }
const values = Array.from({ length: FLOATS }, (_, i) => i)

await t.test('tensors between steps count until their last reader has finished', async (t) => {
  const { router } = await scriptedRouter({ models: { double }, ensembles })
  for (const name of ['three', 'nested']) {
    const memory = new Pool()
    const answered = responsesTo(router.resolve(name, ''), request('IN', values), {
      ...quiet,
      memory,
    })
    t.equal((await collect(answered)).length, 1)
    t.equal(memory.most, 2 * LARGE, `${name}: what a step reads, and what it makes of it`)
    t.equal(memory.bytes, 0, 'and all is given back')
  }
})

await t.test('a request whose tensors go over the bound is refused as overload', async (t) => {
  const { router } = await scriptedRouter({ models: { double }, ensembles })
  for (const name of ['three', 'nested']) {
    const memory = new Pool(1.5 * LARGE)
    const model = router.resolve(name, '')
    const error = await failure(responsesTo(model, request('IN', values), { ...quiet, memory }))
    t.match(error, { code: 'RESOURCE_EXHAUSTED', reason: 'OVERLOADED' })
    t.match(error.details, { model: 'double', ensemble: 'three' })
    t.equal(memory.bytes, 0)
  }
})

await t.test('a step that goes on once its tensors are over the bound is cancelled', async (t) => {
  const cancelled = Promise.withResolvers<void>()
  const many: ScriptedModel = {
    config: `${oneToOne} model_transaction_policy { decoupled: true }`,
    stream: async (sink, signal) => {
      signal.addEventListener('abort', () => cancelled.resolve(), { once: true })
      const outputs = [floats('Y', values)]
      for (let index = 0; index < 3; index += 1)
        sink.send({ index, final: false, outputs, parameters: new Map() })
      await cancelled.promise
      const error = ServeError.from(signal.reason)
      sink.send({ index: 3, final: true, outputs: [], parameters: new Map(), error })
    },
  }
  const { router } = await scriptedRouter({ models: { many }, ensembles: { e: chain('many') } })
  const memory = new Pool(0.5 * LARGE)
  const answered = responsesTo(router.resolve('e', ''), request('IN'), { ...quiet, memory })
  t.match(await failure(answered), { reason: 'OVERLOADED', details: { model: 'many' } })
  await cancelled.promise
  t.equal(memory.bytes, 0)
})
