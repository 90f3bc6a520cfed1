// needs: nats
import { startFaultProxy, startNatsServer } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { RESPONSE_WINDOW, type StepResponse } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { ENDPOINT_DEFAULTS } from '../endpoint-settings.ts'
import {
  answer,
  brokerAt,
  collect,
  envelope,
  failureOf,
  membersOver,
  ref,
  sendTo,
  type Teardown,
  TRANSPORTS,
  tensorBytes,
  until,
  WITH_NATS,
} from '../testing/endpoints.ts'
import type { TestHandler } from '../testing/envelopes.ts'

/** A decoupled model that heeds its reader: `count` responses of `size` bytes each. */
function streaming(count: number, size: number) {
  const state = { sent: 0, hasEnded: false, aborted: undefined as unknown }
  const handle: TestHandler = async (_envelope, _tensors, sink, { signal }) => {
    signal.addEventListener('abort', () => (state.aborted = signal.reason))
    for (; state.sent < count && !signal.aborted; await sink.ready()) {
      const index = state.sent++
      sink.send(answer(tensorBytes(size, index), { index, final: state.sent === count }))
    }
    state.hasEnded = true
    if (signal.aborted) throw signal.reason
  }
  return { state, handle }
}

function isWhole(response: StepResponse, size: number): boolean {
  const bytes = response.outputs[0]?.data ?? new Uint8Array()
  return Buffer.from(tensorBytes(size, response.index)).equals(bytes)
}

for (const via of TRANSPORTS) {
  const { openTestRouter, openTestStep } = membersOver(via)

  /** A router that has called a streaming step, through a relay of its own. Its reader has taken nothing. */
  async function open(t: Teardown, count: number, size: number) {
    const server = await startNatsServer()
    t.teardown(() => server.stop())
    const proxy = await startFaultProxy({ port: server.port })
    t.teardown(() => proxy.close())
    const router = await openTestRouter(t, brokerAt(`nats://127.0.0.1:${proxy.port}`), 'router')
    const { state, handle } = streaming(count, size)
    const step = await openTestStep(t, brokerAt(server.url), 'step', handle)
    await until(router.isReached)
    const cancel = new AbortController()
    const stream = sendTo(router, { replica: 'step' }, envelope(0), [ref(tensorBytes(0))], cancel)
    return { proxy, step, stream, state, cancel }
  }

  await t.test(`over ${via}`, WITH_NATS, async (t) => {
    const WINDOW = ENDPOINT_DEFAULTS.responseCredits
    /** A reader has a window of its own before it is not ready. */
    const AHEAD = WINDOW + RESPONSE_WINDOW.responses
    /** Sent to a reader that has read none: it was ready for all but one of its window, and half a window is granted at a time. */
    const UNREAD = WINDOW + WINDOW / 2

    await t.test(
      'thousands of responses come whole and in order, never more than the window ahead',
      { ...WITH_NATS, timeout: 120_000 },
      async (t) => {
        const size = 3000
        const { stream, state } = await open(t, 3000, size)
        let read = 0
        let ahead = 0
        for await (const response of stream) {
          ahead = Math.max(ahead, state.sent - read)
          if (response.index === read && isWhole(response, size)) read += 1
          if (read % 500 === 0)
            await until(() => state.sent - read >= Math.min(WINDOW / 2, 3000 - read))
        }
        t.same([read, state.hasEnded], [3000, true])
        t.ok(ahead <= AHEAD, `${ahead} were ahead`)
      },
    )

    await t.test('large responses are held back by their bytes', WITH_NATS, async (t) => {
      const size = 1_500_000
      const { stream, state } = await open(t, 12, size)
      let read = 0
      let ahead = 0
      for await (const response of stream) {
        ahead = Math.max(ahead, state.sent - read)
        if (isWhole(response, size)) read += 1
      }
      t.equal(read, 12)
      const most = ENDPOINT_DEFAULTS.responseBytes + RESPONSE_WINDOW.bytes
      t.ok(ahead <= Math.ceil(most / size), `${ahead} were ahead`)
    })

    await t.test(
      'a cancel lets an execution go that waits for its reader',
      WITH_NATS,
      async (t) => {
        const { stream, state, cancel } = await open(t, 5000, 10)
        await until(() => state.sent === UNREAD)
        cancel.abort(new ServeError('CANCELLED', 'client went away'))
        await until(() => state.hasEnded)
        t.match(state, { sent: UNREAD, aborted: { reason: 'CANCELLED' } })
        t.match(await failureOf(collect(stream)), { reason: 'CANCELLED' })
      },
    )

    // One with a direct connection lives on: the relay is before the broker.
    const death = async (t: Test): Promise<void> => {
      const { proxy, stream, state } = await open(t, 5000, 10)
      await until(() => state.sent === UNREAD)
      proxy.refuse()
      proxy.cut()
      await until(() => state.hasEnded)
      t.match(state, { sent: UNREAD, aborted: { reason: 'CANCELLED' } })
      t.match(await failureOf(collect(stream)), { reason: 'STEP_LOST' })
      proxy.accept()
    }
    if (via === 'nats') await t.test('so does the death of its router', WITH_NATS, death)

    await t.test('a drain waits for the reader', WITH_NATS, async (t) => {
      const { step, stream, state, cancel } = await open(t, 200, 10)
      await until(() => state.sent === UNREAD)
      let isDrained = false
      const drained = step.drain({ signal: cancel.signal }).then(() => (isDrained = true))
      const responses = stream[Symbol.asyncIterator]()
      await responses.next()
      t.notOk(isDrained)
      let read = 1
      while ((await responses.next()).done !== true) read += 1
      t.equal(read, 200)
      await drained
    })
  })
}
