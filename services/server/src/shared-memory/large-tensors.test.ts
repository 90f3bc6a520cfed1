import { randomBytes } from 'node:crypto'
import { openCallScope, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { inferObject } from '@tutti/grpc/testing'
import { type ScriptedModel } from '@tutti/serving/testing'
import { PlacingSink } from '@tutti/shared-memory'
import type { StepResponse } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { at, DECOUPLED, openShared, restAt, streamObjects } from '../testing/open-shared.ts'

const MIB = 2 ** 20
const quiet = new AbortController().signal

/** A server whose clients share 16 MiB, of which the first eight are random. */
async function openLarge(t: Test, models?: Readonly<Record<string, ScriptedModel>>) {
  const opened = await openShared(t, models, 16 * MIB)
  const bytes = randomBytes(8 * MIB)
  const place = { region: 'r', offset: 0, byteSize: bytes.byteLength }
  await opened.regions.find('r').store(bytes, place, quiet)
  return { ...opened, bytes, written: () => opened.memory().subarray(8 * MIB) }
}

const LARGE = [8 * MIB] as const
const largeInput = { name: 'x', datatype: 'UINT8', shape: LARGE, parameters: at(0, 8 * MIB) }
const largeOutput = { name: 'x', parameters: at(8 * MIB, 8 * MIB) }

await t.test('large tensors come from shared memory and go there', async (t) => {
  const { served, bytes, written, regions, url } = await openLarge(t)
  const before = written()
  await inferObject(served, { inputs: [largeInput] })
  t.ok(bytes.equals(served.backend.requests[0]?.inputs[0]?.data ?? Buffer.alloc(0)))
  t.ok(written().equals(before))
  await inferObject(served, { inputs: [largeInput], outputs: [largeOutput] })
  t.ok(written().equals(bytes), 'gRPC')
  const small = { ...largeOutput, parameters: at(8 * MIB, 8 * MIB - 1) }
  await t.rejects(inferObject(served, { inputs: [largeInput], outputs: [small] }), {
    code: 'INTERNAL',
    message: /should be at least 8388608 bytes to hold the results/,
  })
  await regions.find('r').store(before, { region: 'r', offset: 8 * MIB, byteSize: 8 * MIB }, quiet)
  const answer = await fetch(`${url}/models/m/infer`, {
    method: 'POST',
    body: JSON.stringify({
      inputs: [{ ...largeInput, parameters: restAt(0, 8 * MIB) }],
      outputs: [{ name: 'x', parameters: restAt(8 * MIB, 8 * MIB) }],
    }),
  })
  t.equal(answer.status, 200)
  t.ok(written().equals(bytes), 'REST')
  regions.unregister('r')
})

await t.test('requests of a stream reach their models in order', async (t) => {
  const { served } = await openLarge(t)
  const small = { ...largeInput, shape: [4], parameters: at(0, 4) }
  const requests = ['1', '2', '3', '4'].map((id) => {
    const inputs = [id === '1' || id === '3' ? largeInput : small]
    return { id, inputs, outputs: [largeOutput] }
  })
  const answers = await streamObjects(served, ...requests)
  t.same(
    served.backend.requests.map(({ context }) => context.id),
    ['1', '2', '3', '4'],
  )
  t.equal(answers.length, 4)
})

await t.test('a decoupled model writes large outputs, one after the other', async (t) => {
  const { served, written, bytes, regions } = await openLarge(t, { m: DECOUPLED })
  const answers = await streamObjects(served, { inputs: [largeInput], outputs: [largeOutput] })
  t.same(
    answers.map(({ error_message, infer_response: r }) => [
      error_message,
      r.raw_output_contents.map((data) => data.byteLength),
    ]),
    Array.from({ length: 3 }, () => ['', [0]]),
  )
  t.ok(written().equals(bytes))
  regions.unregister('r')
})

await t.test('nothing overtakes an output that is being written', async (t) => {
  const { regions, written } = await openLarge(t)
  const seen: string[] = []
  const ended = Promise.withResolvers<void>()
  const sink = {
    send: ({ outputs }: StepResponse) => void seen.push(`${outputs[0]?.data.byteLength}`),
    fail: (error: ServeError) => {
      seen.push(error.message)
      ended.resolve()
    },
  }
  const place = { region: 'r', offset: 8 * MIB, byteSize: 8 * MIB }
  const scope = openCallScope({ clock: systemClock })
  const places = new Map([['x', { region: regions.find('r'), place }]])
  const placing = new PlacingSink(sink, places, scope)
  const data = randomBytes(8 * MIB)
  let lent = 0
  const retain = () => {
    lent += 1
    return () => void (lent -= 1)
  }
  const outputs = [{ name: 'x', datatype: 'UINT8', shape: [8 * MIB], data }] as const
  const many = { index: 0, final: false, outputs, parameters: new Map(), retain }
  const few = { ...many, outputs: [{ ...outputs[0], data: data.subarray(0, 1) }] }
  placing.send(many)
  placing.send(few)
  placing.fail(new ServeError('CANCELLED', 'failed'), 'maybe')
  t.same(seen, [])
  t.equal(lent, 2)
  t.throws(() => regions.unregister('r'), { message: /it is currently in use/ })
  await placing.ready()
  await ended.promise
  t.same(seen, ['0', '0', 'failed'])
  t.equal(lent, 0)
  t.ok(written().equals(data))
  placing.send(many)
  t.equal(placing.ready(), undefined, 'what comes later is dropped')
  regions.unregister('r')
})
