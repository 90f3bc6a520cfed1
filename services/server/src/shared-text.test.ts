import { createManualClock } from '@tutti/chassis/testing'
import t from 'tap'
import { SharedText } from './shared-text.ts'

/** Lets all that waits for no clock go on. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i += 1) await new Promise((resolve) => setImmediate(resolve))
}

await t.test(
  'who asks at the same time shares a text, which is never older than the question',
  async (t) => {
    const clock = createManualClock()
    let made = 0
    let figure = 0
    let end = Promise.withResolvers<void>()
    const texts = new SharedText(async () => {
      made += 1
      const text = String(figure)
      await end.promise
      clock.advance(10)
      return text
    }, clock)
    const first = [texts.get(), texts.get(), texts.get()]
    await settle()
    figure = 1
    const later = [texts.get(), texts.get()]
    end.resolve()
    t.same((await Promise.all(first)).map(String), ['0', '0', '0'])
    t.equal(made, 1)
    end = Promise.withResolvers<void>()
    end.resolve()
    await settle()
    t.equal(made, 1, 'making them takes a tenth of the time')
    figure = 2
    const last = texts.get()
    clock.advance(89)
    await settle()
    t.equal(made, 1)
    clock.advance(1)
    t.same((await Promise.all([...later, last])).map(String), ['2', '2', '2'])
    t.equal(made, 2)
  },
)

await t.test('an error reaches those who asked, and the next text is made', async (t) => {
  let made = 0
  const texts = new SharedText(async () => {
    made += 1
    if (made === 1) throw new Error('no figures')
    return 'figures'
  }, createManualClock())
  const both = [texts.get(), texts.get()]
  for (const one of both) await t.rejects(one, /no figures/)
  t.equal(String(await texts.get()), 'figures')
})
