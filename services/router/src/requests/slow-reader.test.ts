import { ServeError } from '@tutti/errors'
import { RESPONSE_WINDOW } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import {
  chain,
  floats,
  oneToOne,
  request,
  type ScriptedModel,
  scriptedRouter,
} from '../testing/index.ts'

const WINDOW = RESPONSE_WINDOW.responses
/** Responses of a decoupled step that the steps after it may have to finish with. */
const AHEAD = 64

/** A decoupled model that gives `count` responses, each when the sink is ready for it. */
function streaming(count: number) {
  const state = { sent: 0, hasEnded: false }
  const model: ScriptedModel = {
    config: `${oneToOne} model_transaction_policy { decoupled: true }`,
    stream: async (sink, signal) => {
      // As a step does: a caller that cancels is answered at once.
      signal.addEventListener('abort', () => {
        const error = ServeError.from(signal.reason)
        sink.send({ index: state.sent, final: true, outputs: [], parameters: new Map(), error })
      })
      for (; state.sent < count && !signal.aborted; await sink.ready()) {
        const index = state.sent++
        const outputs = [floats('Y', [index])]
        sink.send({ index, final: state.sent === count, outputs, parameters: new Map() })
      }
      state.hasEnded = true
    },
  }
  return { state, model }
}

/** A model that gives its input back, once it may. */
function held() {
  const ends: (() => void)[] = []
  let isOpen = false
  const model: ScriptedModel = {
    config: oneToOne,
    run: async (inputs) => {
      if (!isOpen) await new Promise<void>((resolve) => ends.push(resolve))
      return new Map([['Y', floats('Y', [...(inputs.get('X') ?? [])])]])
    },
  }
  const open = (): void => {
    isOpen = true
    for (const end of ends.splice(0)) end()
  }
  return { model, open, waiting: () => ends.length }
}

const ensemble = chain('many', 'one')

/** Lets everything run that is due. */
async function settle(): Promise<void> {
  for (let i = 0; i < 200; i += 1) await new Promise(setImmediate)
}

function valueOf(response: { outputs: readonly { data: Uint8Array }[] }): number | undefined {
  const data = response.outputs[0]?.data
  return data === undefined ? undefined : new Float32Array(data.slice().buffer)[0]
}

await t.test('a decoupled model is never further ahead of a client than the window', async (t) => {
  const { state, model } = streaming(2000)
  const { router } = await scriptedRouter({ models: { many: model } })
  const signal = new AbortController().signal
  let read = 0
  let ahead = 0
  for await (const response of responsesTo(router.resolve('many', ''), request('X'), { signal })) {
    if (valueOf(response) === read) read += 1
    ahead = Math.max(ahead, state.sent - read)
    if (read % 200 === 0) await settle()
  }
  t.same([read, ahead <= WINDOW], [2000, true])
  t.equal(router.memory.count, 0)
})

await t.test('a decoupled step of an ensemble waits for the client', async (t) => {
  const { state, model } = streaming(2000)
  const one = held()
  one.open()
  const { router } = await scriptedRouter({
    models: { many: model, one: one.model },
    ensembles: { e: ensemble },
  })
  const signal = new AbortController().signal
  const responses = responsesTo(router.resolve('e', ''), request('IN'), { signal })
  await settle()
  t.ok(state.sent <= WINDOW + AHEAD, `${state.sent} were ahead`)
  let read = 0
  for await (const response of responses) if (valueOf(response) === read) read += 1
  t.equal(read, 2000)
  t.equal(router.memory.count, 0)
})

await t.test('and for the steps after it', async (t) => {
  const { state, model } = streaming(2000)
  const one = held()
  const { router } = await scriptedRouter({
    models: { many: model, one: one.model },
    ensembles: { e: ensemble },
  })
  const signal = new AbortController().signal
  const responses = responsesTo(router.resolve('e', ''), request('IN'), { signal })
  await settle()
  t.same([state.sent, one.waiting()], [AHEAD, AHEAD])
  one.open()
  let read = 0
  for await (const response of responses) if (valueOf(response) === read) read += 1
  t.equal(read, 2000)
})

await t.test('max_inflight_requests bounds what its responses do at the next step', async (t) => {
  const { state, model } = streaming(200)
  const one = held()
  const { router } = await scriptedRouter({
    models: { many: model, one: one.model },
    ensembles: {
      e: ensemble.replace('ensemble_scheduling {', '$& max_inflight_requests: 3'),
    },
  })
  const signal = new AbortController().signal
  const responses = responsesTo(router.resolve('e', ''), request('IN'), { signal })
  await settle()
  t.equal(one.waiting(), 3)
  t.ok(state.sent <= AHEAD)
  one.open()
  let read = 0
  for await (const response of responses) if (valueOf(response) === read) read += 1
  t.equal(read, 200)
  t.equal(router.memory.count, 0)
})

await t.test('a cancel lets it go', async (t) => {
  for (const name of ['many', 'e']) {
    const { state, model } = streaming(2000)
    const { router } = await scriptedRouter({
      models: { many: model, one: held().model },
      ensembles: { e: ensemble },
    })
    const cancel = new AbortController()
    const input = name === 'e' ? 'IN' : 'X'
    const responses = responsesTo(router.resolve(name, ''), request(input), {
      signal: cancel.signal,
    })
    await settle()
    t.equal(state.sent, name === 'e' ? AHEAD : WINDOW)
    cancel.abort(new ServeError('CANCELLED', 'client went away'))
    await settle()
    t.ok(state.hasEnded)
    let read = 0
    const failure = await (async () => {
      for await (const response of responses) read += response.final ? 0 : 1
    })().catch((error: unknown) => error)
    t.match(failure, { reason: 'CANCELLED' })
    t.equal(read, name === 'e' ? 0 : WINDOW)
    t.equal(router.memory.bytesInUse, 0)
  }
})
