import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { StepDirectory } from '@tutti/transport'
import t from 'tap'
import { awaitReplica } from './missing-replica.ts'

const revision = { model: 'm', version: 1, revision: 'r' } as const

const unavailable = new ServeError('STEP_UNAVAILABLE', 'no replica')

/** A directory whose only replica is suspect, and what an attempt that waits for it is told. */
function open(o: { readonly giveUpAt?: number; readonly signal?: AbortSignal } = {}) {
  const directory = new StepDirectory()
  directory.announce({ replica: 'a' }, [revision])
  directory.suspect('a', true)
  const clock = createManualClock()
  const told: unknown[] = []
  const wait = (error = unavailable): void =>
    awaitReplica({
      error,
      directory,
      clock,
      revision,
      signal: o.signal ?? new AbortController().signal,
      giveUpAt: o.giveUpAt,
      again: (giveUpAt) => told.push(giveUpAt),
      sink: { fail: ({ reason }, executed) => told.push([reason, executed]) },
    })
  return { directory, clock, told, wait }
}

const FAILED = ['STEP_UNAVAILABLE', 'no']

await t.test('the decision ends the wait, whichever it is', (t) => {
  for (const decide of [
    (directory: StepDirectory) => directory.suspect('a', false),
    (directory: StepDirectory) => directory.remove('a'),
    (directory: StepDirectory) => directory.announce({ replica: 'b' }, [revision]),
  ]) {
    const { directory, clock, told, wait } = open()
    wait()
    t.same(told, [])
    decide(directory)
    directory.remove('a')
    t.same(told, [4000], 'once, with the time until which to wait on')
    t.equal(clock.pending, 0)
  }
  t.end()
})

await t.test('without a decision it ends in time, also over several waits', (t) => {
  const first = open()
  first.wait()
  first.clock.advance(3999)
  t.same(first.told, [])
  first.clock.advance(1)
  t.same(first.told, [FAILED])
  first.directory.remove('a')
  t.equal(first.told.length, 1, 'the wait is over')
  const later = open({ giveUpAt: 10 })
  later.wait()
  later.clock.advance(10)
  t.same(later.told, [FAILED])
  later.wait()
  t.same(later.told, [FAILED, FAILED], 'the time is over')
  t.end()
})

await t.test('a caller that leaves does not wait', (t) => {
  const cancel = new AbortController()
  const { directory, clock, told, wait } = open({ signal: cancel.signal })
  wait()
  cancel.abort(new ServeError('CANCELLED', 'left'))
  directory.remove('a')
  t.same(told, [['CANCELLED', 'no']])
  t.equal(clock.pending, 0)
  wait()
  t.same(told[1], FAILED, 'has left before')
  t.end()
})

await t.test('where no replica is suspect, or a revision is gone, it fails at once', (t) => {
  const { directory, told, wait } = open()
  wait(new ServeError('REVISION_GONE', 'gone'))
  t.same(told, [['REVISION_GONE', 'no']])
  directory.drain('a')
  wait()
  t.same(told[1], FAILED, 'one that drains takes nothing, suspect or not')
  directory.remove('a')
  wait()
  t.same(told[2], FAILED)
  t.end()
})
