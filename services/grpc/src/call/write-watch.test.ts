import { createManualClock } from '@tutti/chassis/testing'
import type { ServeError } from '@tutti/errors'
import t from 'tap'
import { watchWrites } from './write-watch.ts'

interface Call {
  offeredAt: number | undefined
  cutOff(error: ServeError): void
}

function watched() {
  const clock = createManualClock()
  const calls = new Set<Call>()
  const cut: string[] = []
  const end = watchWrites({
    clock,
    timeoutMs: 100,
    calls,
    log: { answerNotTaken: () => cut.push('logged') },
  })
  const begin = (name: string): Call => {
    const call: Call = {
      offeredAt: clock.now(),
      cutOff: ({ reason }) => {
        cut.push(`${name} at ${clock.now()}: ${reason}`)
        calls.delete(call)
      },
    }
    calls.add(call)
    return call
  }
  return { clock, calls, cut, end, begin }
}

await t.test('each call is cut off at its own time, with one timer for all', async (t) => {
  const { clock, cut, begin } = watched()
  begin('a')
  clock.advance(30)
  begin('b')
  clock.advance(30)
  begin('c')
  t.equal(clock.pending, 1)
  clock.advance(39)
  t.same(cut, [])
  clock.advance(200)
  t.same(cut, [
    'logged',
    'a at 100: CANCELLED',
    'logged',
    'b at 130: CANCELLED',
    'logged',
    'c at 160: CANCELLED',
  ])
  t.equal(clock.pending, 1)
})

await t.test('a call that takes something, has taken all or is gone is left alone', async (t) => {
  const { clock, calls, cut, begin } = watched()
  const slow = begin('slow')
  const idle = begin('idle')
  calls.delete(begin('gone'))
  clock.advance(90)
  slow.offeredAt = clock.now()
  idle.offeredAt = undefined
  clock.advance(99)
  t.same(cut, [])
  clock.advance(1)
  t.same(cut, ['logged', 'slow at 190: CANCELLED'])
})

await t.test('a watch that has ended holds no timer', async (t) => {
  const { clock, end, begin } = watched()
  begin('a')
  end()
  t.equal(clock.pending, 0)
})
