import { type CancelSignal, ServeError } from '@tutti/errors'
import t from 'tap'
import { createManualClock } from '../testing/manual-clock.ts'
import type { CallContext } from './call-context.ts'
import { openCallScope, remainingMs } from './call-scope.ts'
import { raceSignal, signalError } from './signal-error.ts'

await t.test('a scope without deadline never sets a timer', async (t) => {
  const clock = createManualClock()
  const scope = openCallScope({ clock, trace: { traceparent: '00-a' } })
  const { context } = scope
  t.equal(context.signal.aborted, false)
  t.equal(clock.pending, 0)
  t.notOk('deadlineAt' in context)
  t.same(context.trace, { traceparent: '00-a' })
  t.equal(remainingMs(context, clock), undefined)
  scope.close()
})

await t.test('nothing is set up until someone looks at the signal or listens to it', async (t) => {
  const clock = createManualClock()
  for (const look of [
    (signal: CancelSignal) => void signal.aborted,
    (signal: CancelSignal) => void signal.reason,
    (signal: CancelSignal) => signal.addEventListener('abort', () => {}),
  ]) {
    const scope = openCallScope({ clock, remainingMs: 100 })
    const { signal } = scope.context
    t.equal(clock.pending, 0)
    look(signal)
    look(signal)
    t.equal(clock.pending, 1)
    scope.close()
    t.equal(clock.pending, 0)
  }
})

await t.test('a listener is called once, unless it was removed', async (t) => {
  const calls: string[] = []
  const scope = openCallScope({ clock: createManualClock() })
  const { signal } = scope.context
  const listeners = ['a', 'b', 'c', 'd'].map((name) => () => void calls.push(name))
  for (const listener of [...listeners, ...listeners]) {
    signal.addEventListener('abort', listener, { once: true })
  }
  for (const i of [0, 2]) signal.removeEventListener('abort', listeners[i] ?? (() => {}))
  const error = new ServeError('CANCELLED', 'the client went away')
  scope.cancel(error)
  scope.cancel(error)
  t.same(calls, ['b', 'd'])
  t.equal(signal.aborted, true)
  t.equal(signal.reason, error)
})

await t.test('the signal aborts with DEADLINE_EXCEEDED when the time is over', async (t) => {
  const clock = createManualClock()
  const { context } = openCallScope({ clock, remainingMs: 250 })
  const { signal } = context
  t.equal(signal.aborted, false)
  clock.advance(249)
  t.equal(signal.aborted, false)
  t.equal(remainingMs(context, clock), 1)
  clock.advance(1)
  t.match(signal.reason, { reason: 'DEADLINE_EXCEEDED', message: 'deadline of 250 ms exceeded' })
  t.equal(remainingMs(context, clock), 0)
  clock.advance(100)
  t.equal(remainingMs(context, clock), 0)
})

await t.test('a signal that is read too late has aborted already', async (t) => {
  const clock = createManualClock()
  const { context } = openCallScope({ clock, remainingMs: 10 })
  clock.advance(20)
  t.match(context.signal.reason, { reason: 'DEADLINE_EXCEEDED' })
  t.match(openCallScope({ clock, remainingMs: -5 }).context.signal.reason, {
    message: 'deadline of 0 ms exceeded',
  })
  t.equal(clock.pending, 0)
})

await t.test('an infinite deadline is none', async (t) => {
  const { context } = openCallScope({
    clock: createManualClock(),
    remainingMs: Number.POSITIVE_INFINITY,
  })
  t.notOk('deadlineAt' in context)
})

await t.test('a timer that ends before the deadline is set again', async (t) => {
  const clock = createManualClock()
  const shortTimers = {
    ...clock,
    setTimer: (ms: number, fire: () => void) => clock.setTimer(Math.min(ms, 100), fire),
  }
  const { signal } = openCallScope({ clock: shortTimers, remainingMs: 250 }).context
  clock.advance(200)
  t.equal(signal.aborted, false)
  clock.advance(50)
  t.equal(signal.aborted, true)
})

await t.test('the first cause of a cancel wins', async (t) => {
  const clock = createManualClock()
  const scope = openCallScope({ clock, remainingMs: 100 })
  const first = new ServeError('CANCELLED', 'the client went away')
  scope.cancel(first)
  scope.cancel(new ServeError('SERVER_STOPPING', 'later'))
  clock.advance(200)
  t.equal(scope.context.signal.reason, first)
  t.equal(clock.pending, 0)
})

await t.test('after close nothing aborts the signal any more', async (t) => {
  const clock = createManualClock()
  const parent = new AbortController()
  const scope = openCallScope({ clock, remainingMs: 100, parent: parent.signal })
  const { signal } = scope.context
  scope.close()
  scope.cancel(new ServeError('CANCELLED', 'late'))
  clock.advance(200)
  parent.abort()
  t.equal(signal.aborted, false)
  const unread = openCallScope({ clock, remainingMs: 100 })
  unread.close()
  clock.advance(200)
  t.equal(unread.context.signal.aborted, false)
})

await t.test("the parent's abort and reason carry over", async (t) => {
  const clock = createManualClock()
  const parent = new AbortController()
  const early = openCallScope({ clock, parent: parent.signal }).context.signal
  t.equal(early.aborted, false)
  const late = openCallScope({ clock, parent: parent.signal }).context
  const reason = new ServeError('SERVER_STOPPING', 'going away')
  parent.abort(reason)
  t.equal(early.reason, reason)
  t.equal(late.signal.reason, reason)
})

await t.test('a context that is spread keeps its signal', async (t) => {
  const scope = openCallScope({ clock: createManualClock() })
  const copy: CallContext = { ...scope.context, trace: { traceparent: '00-b' } }
  t.equal(copy.signal, scope.context.signal)
})

await t.test('ten thousand scopes leave no listener on a parent that lives on', async (t) => {
  const clock = createManualClock()
  const parent = new AbortController()
  let listeners = 0
  const { signal } = parent
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++
    add(...args)
  }
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--
    remove(...args)
  }
  const warnings: Error[] = []
  const onWarning = (warning: Error) => void warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const scopes = Array.from({ length: 10_000 }, () => openCallScope({ clock, parent: signal }))
  for (const scope of scopes) void scope.context.signal.aborted
  t.equal(listeners, 10_000)
  for (const scope of scopes) scope.close()
  t.equal(listeners, 0)
  await new Promise(setImmediate)
  t.same(warnings, [])
})

await t.test('a race ends with the promise or with the reason of the signal', async (t) => {
  const { signal } = new AbortController()
  t.equal(await raceSignal(Promise.resolve(5), signal), 5)
  await t.rejects(raceSignal(Promise.reject(new Error('own')), signal), { message: 'own' })

  const controller = new AbortController()
  const abandoned = Promise.withResolvers<void>()
  const raced = raceSignal(abandoned.promise, controller.signal)
  controller.abort(new ServeError('DEADLINE_EXCEEDED', 'over'))
  await t.rejects(raced, { reason: 'DEADLINE_EXCEEDED', message: 'over' })
  await t.rejects(raceSignal(new Promise(() => {}), controller.signal), { message: 'over' })
  // Must not become an unhandled rejection.
  abandoned.reject(new Error('too late'))
})

await t.test('the reason of any signal becomes one of our errors', async (t) => {
  const own = new ServeError('SERVER_STOPPING', 'x')
  t.equal(signalError(AbortSignal.abort(own)), own)
  t.match(signalError(AbortSignal.abort()), { reason: 'CANCELLED' })
  t.match(signalError(AbortSignal.abort(new Error('odd'))), { reason: 'INTERNAL', message: 'odd' })
  t.match(signalError(AbortSignal.abort(new DOMException('t', 'TimeoutError'))), {
    reason: 'DEADLINE_EXCEEDED',
  })
})

await t.test('a caller that sets a limit of its own names it', async (t) => {
  const clock = createManualClock()
  const scope = openCallScope({ clock, remainingMs: 250, limitName: "the model's timeout" })
  const { signal } = scope.context
  signal.addEventListener('abort', () => {})
  clock.advance(250)
  t.match(signal.reason, {
    reason: 'DEADLINE_EXCEEDED',
    message: "the model's timeout of 250 ms exceeded",
  })
})
