import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import { untilUnpinned } from './until-unpinned.ts'

type Answer = boolean[] | ServeError

const ONE = { model: 'm', version: 1, revision: 'a' }
const TWO = { model: 'm', version: 2, revision: 'b' }
const gone = new ServeError('STEP_UNAVAILABLE', 'the router is gone')

/** Lets every microtask that is due run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Waits for routers that answer as the script says, question by question; the last answer stands. */
function open(script: readonly (readonly Answer[])[]) {
  const clock = createManualClock()
  const asked: unknown[] = []
  const member = {
    isConnected: true,
    askRouters: async (question: string, argument: unknown) => {
      asked.push([question, argument])
      const answers = script[asked.length - 1] ?? script.at(-1) ?? []
      return Promise.allSettled(
        answers.map((answer) =>
          answer instanceof ServeError ? Promise.reject(answer) : Promise.resolve(answer),
        ),
      )
    },
  }
  const closing = new AbortController()
  const o = { replica: 'step-1', clock, member: () => member, signal: closing.signal }
  const free: string[] = []
  const wait = (pin: typeof ONE): void => {
    void untilUnpinned(pin, o).then(() => free.push(pin.revision))
  }
  const later = async (): Promise<void> => {
    clock.advance(200)
    await settle()
  }
  return { clock, asked, member, o, free, wait, later, close: () => closing.abort() }
}

await t.test('without routers nothing is pinned', async (t) => {
  const { free, wait } = open([[]])
  wait(ONE)
  await settle()
  t.same(free, ['a'])
  const { o } = open([])
  await untilUnpinned(ONE, { ...o, member: () => undefined })
})

await t.test('a version is free when every router says so', async (t) => {
  const { asked, free, wait, later, clock } = open([
    [[true], [false]],
    [[false], [true]],
    [[true], [true]],
  ])
  wait(ONE)
  await settle()
  t.same(asked, [['unpinned', { replica: 'step-1', pins: [['m', 1, 'a']] }]])
  await later()
  t.same(free, [])
  await later()
  t.same(free, ['a'])
  t.equal(asked.length, 3)
  t.equal(clock.pending, 0, 'no router is asked any more')
})

await t.test('several versions are free one by one', async (t) => {
  const { asked, free, wait, later } = open([[[false]], [[true]], [[true]]])
  wait(ONE)
  wait(TWO)
  await settle()
  t.match(asked[1], ['unpinned', { pins: [['m', 2, 'b']] }])
  t.same(free, ['b'])
  await later()
  t.match(asked[2], ['unpinned', { pins: [['m', 1, 'a']] }])
  t.same(free, ['b', 'a'])
})

await t.test('a router that is gone counts nothing, one that cannot answer may', async (t) => {
  const broken = new ServeError('INTERNAL', 'broken')
  const { free, wait, later } = open([
    [[true], broken],
    [[true], gone],
  ])
  wait(ONE)
  await settle()
  t.same(free, [])
  await later()
  t.same(free, ['a'])
  const short = open([[[]]])
  short.wait(ONE)
  await settle()
  t.same(short.free, [], 'an answer that does not name it frees nothing')
  short.close()
})

await t.test('while the broker is away no router is asked', async (t) => {
  const { asked, member, free, wait, later } = open([[[true]]])
  member.isConnected = false
  wait(ONE)
  await later()
  t.same([asked, free], [[], []])
  member.isConnected = true
  await later()
  t.same(free, ['a'])
})

await t.test('the end of the step is the end of the wait', async (t) => {
  const { free, wait, o, close, clock } = open([[[false]]])
  wait(ONE)
  await settle()
  close()
  await settle()
  t.same(free, ['a'])
  t.equal(clock.pending, 0)
  await untilUnpinned(TWO, o)
})
