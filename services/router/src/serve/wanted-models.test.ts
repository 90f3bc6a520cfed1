import { createManualClock } from '@tutti/chassis/testing'
import t from 'tap'
import { WantedModels } from './wanted-models.ts'

/** The answers of a router for whose Models a test says who waits. */
function open() {
  const clock = createManualClock()
  const state = { models: [] as readonly string[] }
  const wanted = new WantedModels({ clock, list: () => state.models })
  return {
    clock,
    wanted,
    set: (...models: readonly string[]) => {
      state.models = models
      wanted.changed()
    },
    ask: (seen: string) => wanted.answer(new URLSearchParams({ seen })),
  }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

await t.test('a question without an earlier answer is answered at once', async (t) => {
  const { ask, set } = open()
  const first = await ask('')
  t.same(first.models, [])
  set('m')
  const second = await ask(first.seen)
  t.same(second.models, ['m'], 'before the change was told')
  t.not(second.seen, first.seen)
  t.same((await ask('of another router')).models, ['m'])
})

await t.test('a question that knows the last answer waits for a change', async (t) => {
  const { ask, set, clock } = open()
  const { seen } = await ask('')
  let isAnswered = false
  const question = ask(seen).then((answer) => {
    isAnswered = true
    return answer
  })
  set('m')
  set('m', 'n')
  await settle()
  await settle()
  t.ok(isAnswered)
  t.same((await question).models, ['m', 'n'], 'one answer to changes that come together')
  t.equal(clock.pending, 0)
})

await t.test('a change that is over before it is told changes nothing', async (t) => {
  const { ask, set, clock } = open()
  const { seen } = await ask('')
  const question = ask(seen)
  set('m')
  set()
  await settle()
  clock.advance(9999)
  t.equal(clock.pending, 1)
  clock.advance(1)
  t.same(await question, { seen, models: [] }, 'answered in the end, as it was')
})

await t.test('questions are few: a further one ends the wait of the oldest', async (t) => {
  const { ask, clock, wanted } = open()
  const { seen } = await ask('')
  const questions = Array.from({ length: 17 }, () => ask(seen))
  t.same(await questions[0], { seen, models: [] })
  t.equal(clock.pending, 16)
  wanted.close()
  await Promise.all(questions)
  t.equal(clock.pending, 0)
})
