import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import t from 'tap'
import { StepWatch } from './step-watch.ts'

interface Question {
  readonly replica: string
  readonly signal: AbortSignal
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
  const watch = new StepWatch({
    ...o,
    clock,
    random: () => 0,
    describe: (replica, { signal }) => {
      const { promise, resolve, reject } = Promise.withResolvers<{ replica: string; models: [] }>()
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
    },
    described: (replica) => described.push(replica),
    failed: (replica, _error, delayMs) => failures.push([replica, delayMs]),
  })
  return { watch, clock, questions, described, failures }
}

await t.test('a step that comes is asked, and the answer is handed on', async (t) => {
  const { watch, questions, described } = rig()
  t.equal(watch.isSettled, true)
  watch.changed('a')
  t.equal(watch.isSettled, false)
  await questions[0]?.answer()
  t.same(described, ['a'])
  t.equal(watch.isSettled, true)
})

await t.test('an answer from before the last change is not used', async (t) => {
  const { watch, questions, described } = rig()
  watch.changed('a')
  watch.changed('a')
  t.equal(questions[0]?.signal.aborted, true)
  await questions[0]?.answer()
  t.same(described, [])
  await questions[1]?.answer()
  t.same(described, ['a'])
})

await t.test('nor is that of a step that is gone, and its failure is not reported', async (t) => {
  const { watch, clock, questions, described, failures } = rig()
  watch.changed('a')
  watch.changed('b')
  watch.gone('a')
  watch.gone('b')
  await questions[0]?.answer()
  await questions[1]?.fail()
  t.same([described, failures, clock.pending], [[], [], 0])
  t.equal(watch.isSettled, true)
})

await t.test('failures are asked again, later each time, until an answer comes', async (t) => {
  const { watch, clock, questions, described, failures } = rig()
  watch.changed('a')
  for (const [i, delayMs] of [50, 100, 200].entries()) {
    await questions[i]?.fail()
    t.same(failures.at(-1), ['a', delayMs])
    clock.advance(delayMs - 1)
    t.equal(questions.length, i + 1)
    clock.advance(1)
    t.equal(questions.length, i + 2)
  }
  await questions[3]?.answer()
  t.same(described, ['a'])
})

await t.test('a change or the end takes the wait back', async (t) => {
  const { watch, clock, questions } = rig()
  watch.changed('a')
  await questions[0]?.fail()
  watch.changed('a')
  t.equal(questions.length, 2, 'at once')
  t.equal(clock.pending, 0)
  await questions[1]?.fail()
  watch.close()
  t.equal(clock.pending, 0)
})

await t.test('few questions are open at a time, and each step waits in line once', async (t) => {
  const { watch, questions, described } = rig({ parallelism: 2 })
  for (const replica of ['a', 'b', 'c', 'd', 'c']) watch.changed(replica)
  const open = () => questions.map(({ replica }) => replica)
  t.same(open(), ['a', 'b'])
  await questions[1]?.answer()
  await questions[2]?.answer()
  t.same(new Set(open()), new Set(['a', 'b', 'c', 'd']))
  await questions[0]?.answer()
  await questions[3]?.answer()
  t.equal(described.length, 4)
})
