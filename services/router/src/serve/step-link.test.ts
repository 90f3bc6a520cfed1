import { createLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { type CancelSignal, ServeError } from '@tutti/errors'
import t from 'tap'
import { StepLink } from './step-link.ts'

interface Question {
  readonly replica: string
  readonly signal: CancelSignal
  answer(): Promise<void>
  fail(): Promise<void>
}

/** Lets every microtask and immediate that is due run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function rig(o: { readonly parallelism?: number } = {}) {
  const clock = createManualClock()
  const questions: Question[] = []
  const described: string[] = []
  const failures: [string, number][] = []
  const write = (line: string) => {
    const { message, replica, delayMs } = JSON.parse(line)
    if (message === 'step did not describe itself') failures.push([replica, delayMs])
  }
  const ask = (replica: string, signal: CancelSignal) => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    questions.push({
      replica,
      signal,
      answer: () => {
        resolve({ replica, models: [] })
        return settle()
      },
      fail: () => {
        reject(new ServeError('STEP_UNAVAILABLE', 'no answer'))
        return settle()
      },
    })
    return promise
  }
  const link = new StepLink({
    ...o,
    clock,
    random: () => 0,
    log: createLogger({ level: 'info', name: 'test', destination: { write } }),
    members: Promise.resolve({
      ask: (replica, _question, _argument, { signal }) => ask(replica, signal),
    }),
    view: {
      announce: () => {},
      describe: ({ replica }) => described.push(replica),
      remove: () => {},
    },
  })
  const changed = (replica: string) => {
    link.changed(replica, [])
    return settle()
  }
  const gone = (replica: string) => link.gone(replica, new ServeError('STEP_UNAVAILABLE', 'gone'))
  return { link, changed, gone, clock, questions, described, failures }
}

await t.test('a step that comes is asked, and the answer is handed on', async (t) => {
  const { link, changed, questions, described } = rig()
  t.equal(link.isSettled, true)
  await changed('a')
  t.equal(link.isSettled, false)
  await questions[0]?.answer()
  t.same(described, ['a'])
  t.equal(link.isSettled, true)
})

await t.test('an answer from before the last change is not used', async (t) => {
  const { changed, questions, described } = rig()
  await changed('a')
  await changed('a')
  t.equal(questions[0]?.signal.aborted, true)
  await questions[0]?.answer()
  t.same(described, [])
  await questions[1]?.answer()
  t.same(described, ['a'])
})

await t.test('nor is that of a step that is gone, and its failure is not reported', async (t) => {
  const { link, changed, gone, clock, questions, described, failures } = rig()
  await changed('a')
  await changed('b')
  gone('a')
  gone('b')
  await questions[0]?.answer()
  await questions[1]?.fail()
  t.same([described, failures, clock.pending], [[], [], 0])
  t.equal(link.isSettled, true)
})

await t.test('failures are asked again, later each time, until an answer comes', async (t) => {
  const { changed, clock, questions, described, failures } = rig()
  await changed('a')
  for (const [i, delayMs] of [50, 100, 200].entries()) {
    await questions[i]?.fail()
    t.same(failures.at(-1), ['a', delayMs])
    clock.advance(delayMs - 1)
    t.equal(questions.length, i + 1)
    clock.advance(1)
    await settle()
    t.equal(questions.length, i + 2)
  }
  await questions[3]?.answer()
  t.same(described, ['a'])
})

await t.test('a change or the end takes the wait back', async (t) => {
  const { link, changed, clock, questions } = rig()
  await changed('a')
  await questions[0]?.fail()
  await changed('a')
  t.equal(questions.length, 2, 'at once')
  t.equal(clock.pending, 0)
  await questions[1]?.fail()
  link.close()
  t.equal(clock.pending, 0)
})

await t.test('few questions are open at a time, and each step waits in line once', async (t) => {
  const { changed, questions, described } = rig({ parallelism: 2 })
  for (const replica of ['a', 'b', 'c', 'd', 'c']) void changed(replica)
  await settle()
  const open = () => questions.map(({ replica }) => replica)
  t.same(open(), ['a', 'b'])
  await questions[1]?.answer()
  await questions[2]?.answer()
  t.same(new Set(open()), new Set(['a', 'b', 'c', 'd']))
  await questions[0]?.answer()
  await questions[3]?.answer()
  t.equal(described.length, 4)
})
