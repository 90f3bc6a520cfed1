import t from 'tap'
import { OwnModels } from './loadable-models.ts'

function open(names: readonly string[], chosen: readonly string[]): OwnModels {
  const repository = {
    names: async () => names,
    readConfig: async () => undefined,
    take: () => Promise.reject(new Error('nothing is loaded here')),
  }
  return new OwnModels(repository, chosen)
}

await t.test('a step without --model takes every model, known or not', async (t) => {
  const own = open(['a', 'b'], [])
  await own.names()
  t.same(own.loadable, { names: ['a', 'b'], isOpen: true, awaited: [] })
})

await t.test('what --model names may be loaded before there is a directory of it', async (t) => {
  const own = open(['a', 'b'], ['b', 'later'])
  t.same(await own.names(), ['b'])
  t.same(own.loadable, { names: ['b'], isOpen: false, awaited: ['later'] })
})
