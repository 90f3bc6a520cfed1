import t from 'tap'
import { type Graph, modelsOf } from '../graph.ts'
import { readConfigGraph } from '../read/read-config.ts'
import { ensembleConfig, modelConfig, stepConfig } from '../testing/configs.ts'
import { orderEnsembles } from './ensemble-order.ts'

function graphs(
  dependencies: Readonly<Record<string, readonly string[]>>,
): ReadonlyMap<string, Graph> {
  const entries = Object.entries(dependencies).map(([name, models]): [string, Graph] => [
    name,
    readConfigGraph(
      ensembleConfig({ name, steps: models.map((model) => stepConfig(model, {}, {})) }),
    ),
  ])
  return new Map(entries)
}

await t.test('the models of an ensemble are found once each, in step order', async (t) => {
  const graph = graphs({ e: ['b', 'a', 'b'] }).get('e')
  t.same(graph && modelsOf(graph), ['b', 'a'])
  t.same(modelsOf(readConfigGraph(modelConfig())), [])
})

await t.test('an ensemble comes after those that it contains', async (t) => {
  const { order, cycles } = orderEnsembles(
    graphs({ top: ['mid', 'low', 'plain'], mid: ['low'], low: ['plain'], alone: ['plain'] }),
  )
  t.same(order, ['low', 'alone', 'mid', 'top'])
  t.equal(cycles.size, 0)
})

await t.test('ensembles that contain each other are refused, each with its own text', async (t) => {
  const { order, cycles } = orderEnsembles(
    graphs({
      A: ['B'],
      B: ['C', 'plain'],
      C: ['plain', 'A'],
      self: ['self'],
      user: ['A'],
      ok: [],
    }),
  )
  t.same(
    [...cycles].map(([name, error]) => [name, error.message]),
    [
      ['A', 'circular dependency between ensembles: A -> ... -> B -> A'],
      ['B', 'circular dependency between ensembles: B -> ... -> C -> B'],
      ['C', 'circular dependency between ensembles: C -> ... -> A -> C'],
      ['self', 'circular dependency between ensembles: self -> ... -> self -> self'],
    ],
  )
  for (const error of cycles.values()) t.equal(error.reason, 'ENSEMBLE_DEPENDENCY')
  t.same(order, ['user', 'ok'], 'who merely contains a cycle is left to planning')
})
