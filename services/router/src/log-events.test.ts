import { createLogger } from '@tutti/chassis'
import t from 'tap'
import { chain, oneToOne, scriptedRouter } from './testing/index.ts'

await t.test('an ensemble that calls itself decoupled, and is not, is told of once', async (t) => {
  const lines: string[] = []
  const log = createLogger({ name: 'test', destination: { write: (line) => lines.push(line) } })
  const text = chain('plus', 'plus')
  const { refresh, served } = await scriptedRouter({
    log,
    models: { plus: { config: oneToOne } },
    ensembles: { plain: text, says: `model_transaction_policy { decoupled: true } ${text}` },
  })
  served.set('other', { config: oneToOne })
  refresh()
  const told = lines
    .filter((line) => line.includes('has no effect'))
    .map((line) => JSON.parse(line))
  t.match(told, [{ level: 'warn', model: 'says', why: /^none of its steps is decoupled/ }])
  t.equal(told.length, 1)
})
