import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { StepDirectory } from '@tutti/transport'
import t from 'tap'
import { awaitReplica } from './await-replica.ts'

const revision = { model: 'm', version: 1, revision: 'r' } as const

/** A directory whose only replica is suspect, and somebody who waits. */
function open(o: { readonly giveUpAt?: number; readonly signal?: AbortSignal } = {}) {
  const directory = new StepDirectory()
  directory.announce({ replica: 'a' }, [revision])
  directory.suspect('a', true)
  const clock = createManualClock()
  const heard: unknown[] = []
  const wait = () =>
    awaitReplica({
      directory,
      clock,
      revision,
      signal: o.signal ?? new AbortController().signal,
      giveUpAt: o.giveUpAt,
      decided: (giveUpAt) => heard.push(giveUpAt),
      failed: (reason) => heard.push(reason?.reason),
    })
  return { directory, clock, heard, wait }
}

await t.test('a verdict ends the wait, whatever it is', (t) => {
  for (const decide of [
    (directory: StepDirectory) => directory.suspect('a', false),
    (directory: StepDirectory) => directory.remove('a'),
    (directory: StepDirectory) => directory.announce({ replica: 'b' }, [revision]),
  ]) {
    const { directory, clock, heard, wait } = open()
    t.ok(wait())
    t.same(heard, [])
    decide(directory)
    directory.remove('a')
    t.same(heard, [4000], 'once, with the time until which to wait on')
    t.equal(clock.pending, 0)
  }
  t.end()
})

await t.test('without a verdict it ends in time, also over several waits', (t) => {
  const first = open()
  t.ok(first.wait())
  first.clock.advance(3999)
  t.same(first.heard, [])
  first.clock.advance(1)
  t.same(first.heard, [undefined])
  first.directory.remove('a')
  t.equal(first.heard.length, 1, 'nobody waits any more')
  const later = open({ giveUpAt: 10 })
  t.ok(later.wait())
  later.clock.advance(10)
  t.same(later.heard, [undefined])
  t.notOk(later.wait(), 'the time is over')
  t.end()
})

await t.test('a caller that leaves does not wait', (t) => {
  const cancel = new AbortController()
  const { directory, clock, heard, wait } = open({ signal: cancel.signal })
  t.ok(wait())
  cancel.abort(new ServeError('CANCELLED', 'left'))
  directory.remove('a')
  t.same(heard, ['CANCELLED'])
  t.equal(clock.pending, 0)
  t.notOk(wait(), 'has left before')
  t.end()
})

await t.test('nobody is waited for where nobody is suspect', (t) => {
  const { directory, heard, wait } = open()
  directory.drain('a')
  t.notOk(wait(), 'one that drains takes nothing, suspect or not')
  directory.remove('a')
  t.notOk(wait())
  t.same(heard, [])
  t.end()
})
