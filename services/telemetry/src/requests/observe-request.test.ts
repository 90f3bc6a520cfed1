import { ServeError } from '@tutti/errors'
import { EMPTY_CONTEXT, type RequestObserver } from '@tutti/tensor'
import t from 'tap'
import { observeRequest } from './observe-request.ts'

const MODEL = { name: 'm', version: 1, isEnsemble: false }
const REQUEST = { context: EMPTY_CONTEXT, inputs: [], requestedOutputs: [] }
const RESPONSE = { index: 0, final: false, outputs: [], parameters: new Map() }
const CLIENT = { protocol: 'grpc', isOutside: false, arrivedAt: 7 } as const
const { signal } = new AbortController()

/** A request whose events and responses are noted, in their order. */
function begin(o: { readonly steps?: RequestObserver; readonly outer?: RequestObserver } = {}) {
  const notes: string[] = []
  const observer: RequestObserver = {
    began: (_model, _request, { client }) => {
      notes.push(`began ${client?.protocol}`)
      return {
        steps: o.steps,
        responded: () => notes.push('responded'),
        ended: ({ elapsedNs, error, executed }) =>
          notes.push(`ended ${elapsedNs} ${error?.reason} ${executed}`),
        answered: () => notes.push('answered'),
      }
    },
  }
  const sink = { send: () => notes.push('sent'), fail: () => notes.push('failed') }
  const options = { signal, observer: o.outer }
  let now = 1
  const clock = { now: () => now++ }
  const begins = { model: MODEL, request: REQUEST, sink, options, client: CLIENT }
  return { notes, observed: observeRequest(observer, clock, begins) }
}

await t.test('each event comes before its response, and the last one after it', (t) => {
  const { notes, observed } = begin()
  const [sink] = observed
  sink.send(RESPONSE)
  sink.send({ ...RESPONSE, index: 1, final: true })
  t.same(notes, [
    'began grpc',
    'responded',
    'sent',
    'ended 1000000 undefined undefined',
    'responded',
    'sent',
    'answered',
  ])
  const failing = begin()
  failing.observed[0].fail(new ServeError('ENGINE_FAILED', 'x'), 'maybe')
  t.same(failing.notes.slice(1), ['ended 1000000 ENGINE_FAILED maybe', 'failed', 'answered'])
  t.equal(sink.ready?.(), undefined)
  t.end()
})

await t.test('a caller that leaves ends it for those who watch, and not for its sink', (t) => {
  const { notes, observed } = begin()
  const [sink, , request] = observed
  request?.left(new ServeError('STEP_TIMEOUT', 'late'))
  sink.fail(new ServeError('CANCELLED', 'x'), 'maybe')
  t.same(notes.slice(1), ['ended 1000000 STEP_TIMEOUT maybe', 'failed', 'answered'])
  t.end()
})

await t.test('a request that nobody watches is as it was', (t) => {
  const sink = { send: () => {}, fail: () => {} }
  const options = { signal }
  const begins = { model: MODEL, request: REQUEST, sink, options }
  const clock = { now: () => 0 }
  const [to, given] = observeRequest({ began: () => undefined }, clock, begins)
  t.equal(to, sink)
  t.equal(given, options)
  t.end()
})

await t.test('what it calls is observed by those who observe it, and by those before', (t) => {
  const seen: string[] = []
  const noting = (name: string): RequestObserver => ({ began: () => void seen.push(name) })
  t.equal(begin().observed[1].observer, undefined)
  const both = begin({ steps: noting('steps'), outer: noting('outer') }).observed[1].observer
  both?.began(MODEL, REQUEST, {})
  t.same(seen, ['outer', 'steps'])
  t.end()
})
