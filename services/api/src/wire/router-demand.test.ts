import { ServeError } from '@tutti/errors'
import t from 'tap'
import { parseSleepMark, parseWantedByRouter } from './router-demand.ts'

await t.test('the mark of a Model that may have no pods is read as it was written', (t) => {
  for (const mark of [{ loadMs: 600_000 }, { loadMs: 1, start: 'a pod loads the model' }]) {
    t.same(parseSleepMark(JSON.stringify(mark)), mark)
  }
  t.same(parseSleepMark('{"loadMs":5,"later":true}'), { loadMs: 5 }, 'of a newer operator')
  t.end()
})

/** The field that a parser refuses. */
function fieldOf(parse: () => unknown): string | undefined {
  try {
    parse()
    return undefined
  } catch (error) {
    const { reason, details } = ServeError.from(error)
    return reason === 'MALFORMED_MESSAGE' ? details.field : reason
  }
}

await t.test('a mark that does not fit is refused with its field', (t) => {
  t.throws(() => parseSleepMark('{'), { message: /annotation tutti\.dev\/sleep: it is no/ })
  t.equal(
    fieldOf(() => parseSleepMark('{"loadMs":0}')),
    'loadMs',
  )
  const long = JSON.stringify({ loadMs: 1, start: 'x'.repeat(1025) })
  t.equal(
    fieldOf(() => parseSleepMark(long)),
    'start',
  )
  t.end()
})

await t.test('the demand of a router names models, and the answer', (t) => {
  const answer = { seen: 'a-1', models: ['m', 'n'] }
  t.same(parseWantedByRouter({ ...answer, hue: 1 }), answer)
  t.equal(
    fieldOf(() => parseWantedByRouter({ seen: 'a', models: [1] })),
    'models[0]',
  )
  t.end()
})
