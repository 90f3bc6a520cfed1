import { createLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { EMPTY_CONTEXT, NO_TIMES, type RequestObserver } from '@tutti/tensor'
import t from 'tap'
import { StatisticsRecorder } from '../statistics/statistics.ts'
import { OBSERVED_EVENTS, throwingObserver } from '../testing/noting-observer.ts'
import { joinObservers, logObserverFailures } from './join-observers.ts'

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
      counted: (what, count) => note(`counted ${what} ${count}`)(),
    }),
    passed: (_model, how, why) => note(`passed ${how} ${why}`)(),
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

await t.test('what is told of a step reaches all of them', (t) => {
  const notes: string[] = []
  const joined = joinObservers([noting(notes, 'a'), noting(notes, 'b')])
  joined?.began(MODEL, REQUEST, {})?.counted?.('items', 3)
  joined?.passed?.(MODEL, 'skipped', 'x > 1')
  const events = ['counted items 3', 'passed skipped x > 1']
  t.same(
    notes,
    events.flatMap((event) => [`a ${event}`, `b ${event}`]),
  )
  t.end()
})

await t.test('one that is joined already is itself, and none is none', (t) => {
  const joined = joinObservers([undefined, noting([], 'a')])
  t.equal(joinObservers([joined]), joined)
  t.equal(joinObservers([]), undefined)
  const uninterested = joinObservers([{ began: () => undefined }])
  t.equal(uninterested?.began(MODEL, REQUEST, {}), undefined)
  t.end()
})

await t.test('one that throws is told no more of its request, and others are', (t) => {
  const response = { index: 0, final: true, outputs: [], parameters: new Map() }
  for (const event of OBSERVED_EVENTS) {
    const notes: string[] = []
    const failures: string[] = []
    const observers = [noting(notes, 'a'), throwingObserver(event, notes), noting(notes, 'b')]
    const joined = joinObservers(observers, (at, error) => failures.push(`${at} ${String(error)}`))
    const watch = joined?.began(MODEL, REQUEST, {}) ?? {}
    for (let i = 0; i < 2; i += 1) {
      watch.queued?.()
      watch.dequeued?.()
      watch.responded?.(response)
      watch.ended?.(END)
      watch.answered?.()
    }
    t.same(failures, [`${event} Error: thrown at ${event}`])
    const told = ['queued', 'dequeued', 'responded', 'ended']
    const both = told.flatMap((one) => [`a ${one}`, `b ${one}`])
    t.same(
      notes.filter((note) => / /.test(note)),
      [...both, ...both],
    )
    t.equal(notes.filter((note) => note === event).length, 1)
  }
  t.end()
})

await t.test('one that throws when a step passes does not keep others from it', (t) => {
  const notes: string[] = []
  const failures: string[] = []
  const throwing: RequestObserver = {
    began: () => undefined,
    passed: () => {
      throw new Error('no')
    },
  }
  const joined = joinObservers([throwing, noting(notes, 'a')], (at) => failures.push(at))
  joined?.passed?.(MODEL, 'defaulted', '')
  t.same([failures, notes], [['passed'], ['a passed defaulted ']])
  t.end()
})

await t.test('what observers throw is logged once in a while', (t) => {
  const lines: Record<string, unknown>[] = []
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) }
  const log = createLogger({ level: 'info', name: 'test', destination })
  const clock = createManualClock()
  const joined = joinObservers([throwingObserver('ended')], logObserverFailures(log, { clock }))
  for (let i = 0; i < 5; i += 1) joined?.began(MODEL, REQUEST, {})?.ended?.(END)
  clock.advance(60_000)
  joined?.began(MODEL, REQUEST, {})?.ended?.(END)
  t.equal(lines.length, 2)
  t.match(lines[0], { level: 'error', event: 'ended', error: { message: 'thrown at ended' } })
  t.match(lines[1], { suppressed: 4 })
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
