import { EMPTY_CONTEXT, NO_TIMES, type RequestObserver } from '@tutti/tensor'
import t from 'tap'
import { StatisticsRecorder } from '../statistics/statistics.ts'
import { joinObservers } from './join-observers.ts'

const MODEL = { name: 'm', version: 1, isEnsemble: false }
const REQUEST = { context: EMPTY_CONTEXT, inputs: [], requestedOutputs: [] }
const END = { elapsedNs: 5, batchSize: 2, times: NO_TIMES }

function noting(notes: string[], name: string): RequestObserver {
  const note = (what: string) => () => void notes.push(`${name} ${what}`)
  const steps = { began: () => ({ ended: note('step ended') }) }
  return {
    began: () => ({
      steps,
      queued: note('queued'),
      dequeued: note('dequeued'),
      responded: note('responded'),
      ended: note('ended'),
    }),
  }
}

await t.test('observers that are joined get the same events, in their order', (t) => {
  const notes: string[] = []
  const uninterested = { began: () => undefined }
  const joined = joinObservers([noting(notes, 'a'), undefined, uninterested, noting(notes, 'b')])
  const watch = joined?.began(MODEL, REQUEST, {}) ?? {}
  watch.queued?.()
  watch.dequeued?.()
  watch.responded?.({ index: 0, final: true, outputs: [], parameters: new Map() })
  watch.steps?.began(MODEL, REQUEST, {})?.ended?.(END)
  watch.ended?.(END)
  const events = ['queued', 'dequeued', 'responded', 'step ended', 'ended']
  t.same(
    notes,
    events.flatMap((event) => [`a ${event}`, `b ${event}`]),
  )
  t.end()
})

await t.test('an observer alone is asked itself, and none is none', (t) => {
  const one = noting([], 'a')
  t.equal(joinObservers([undefined, one]), one)
  t.equal(joinObservers([]), undefined)
  const watching = { began: () => ({ queued: () => {} }) }
  t.same(
    Object.keys(
      joinObservers([{ began: () => undefined }, watching])?.began(MODEL, REQUEST, {}) ?? {},
    ),
    ['queued'],
  )
  t.end()
})

await t.test('statistics watch every request without an object for it', (t) => {
  const recorder = new StatisticsRecorder({ name: 'm', version: '1' })
  t.equal(recorder.began(), recorder)
  recorder.queued()
  t.equal(recorder.pending, 1)
  recorder.dequeued()
  recorder.ended(END)
  t.match(recorder.snapshot(), { inferenceCount: 2n, success: { count: 1n, ns: 5n } })
  t.equal(recorder.pending, 0)
  t.end()
})
