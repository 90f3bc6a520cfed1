import type { ModelConfig } from '@tutti/model-config'
import t from 'tap'
import { findDependencies, orderEnsembles } from './ensemble-order.ts'
import { ensembleConfig, modelConfig, stepConfig } from './testing/configs.ts'

function configs(
  dependencies: Readonly<Record<string, readonly string[]>>,
): ReadonlyMap<string, ModelConfig> {
  const entries = Object.entries(dependencies).map(([name, models]): [string, ModelConfig] => [
    name,
    ensembleConfig({ name, steps: models.map((model) => stepConfig(model, {}, {})) }),
  ])
  return new Map(entries)
}

await t.test('the models of an ensemble are found once each, in step order', async (t) => {
  const config = configs({ e: ['b', 'a', 'b'] }).get('e')
  t.same(config && findDependencies(config), ['b', 'a'])
  t.same(findDependencies(modelConfig()), [])
})

await t.test('an ensemble comes after those that it contains', async (t) => {
  const { order, cycles } = orderEnsembles(
    configs({ top: ['mid', 'low', 'plain'], mid: ['low'], low: ['plain'], alone: ['plain'] }),
  )
  t.same(order, ['low', 'alone', 'mid', 'top'])
  t.equal(cycles.size, 0)
})

await t.test('ensembles that contain each other are refused, each with its own text', async (t) => {
  const { order, cycles } = orderEnsembles(
    configs({
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
