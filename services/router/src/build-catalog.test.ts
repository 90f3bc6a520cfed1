import type { ServedModel } from '@tutti/ensemble'
import t from 'tap'
import { buildCatalog } from './build-catalog.ts'
import { EMPTY_CATALOG } from './catalog.ts'
import type { EnsembleSource } from './ensemble-source.ts'
import { chain, oneToOne, toConfig } from './testing/index.ts'

function served(name: string, revision: string): ServedModel {
  const version = { version: 1, revision, state: 'READY' as const, reason: '' }
  return { name, config: toConfig(name, oneToOne), labels: {}, versions: [version], reason: '' }
}

function source(name: string, steps: readonly [string, string]): EnsembleSource {
  const config = toConfig(name, chain(...steps))
  return { name, config, labels: {}, versions: [{ version: 1, revision: name }], reason: '' }
}

const MODELS = ['a', 'b', 'c', 'd']
const SOURCES = [
  source('outer', ['inner', 'c']),
  source('inner', ['a', 'b']),
  source('other', ['c', 'd']),
  source('round', ['square', 'a']),
  source('square', ['round', 'a']),
]
const nothingIsLost = { lost: () => [] }

await t.test('a change leaves alone what does not depend on it', async (t) => {
  const steps = MODELS.map((name, order) => ({ models: [served(name, 'one')], order }))
  const before = buildCatalog(steps, SOURCES, nothingIsLost)
  const changed = steps.with(0, { models: [served('a', 'two')], order: 4 })
  const after = buildCatalog(changed, SOURCES, { ...nothingIsLost, previous: before })
  const kept = [...after.models.keys()].filter(
    (name) => after.models.get(name) === before.models.get(name),
  )
  t.same(kept, ['b', 'c', 'd', 'other'])
  t.equal(after.models.get('a')?.versions[0]?.revision, 'two')
})

await t.test('after any changes the catalog is what it would be at once', async (t) => {
  let seed = 7
  const random = (below: number): number => {
    seed = (seed * 48_271) % 0x7fff_ffff
    return seed % below
  }
  const steps = new Map<number, { models: readonly ServedModel[]; order: number }>()
  let sources = SOURCES
  let previous = EMPTY_CATALOG
  for (let turn = 0; turn < 200; turn++) {
    const replica = random(5)
    if (random(3) === 0) steps.delete(replica)
    else {
      const models = MODELS.filter(() => random(2) === 0)
      const revision = `revision-${random(2)}`
      steps.set(replica, { models: models.map((name) => served(name, revision)), order: turn })
    }
    if (random(4) === 0) sources = SOURCES.filter(() => random(4) > 0)
    previous = buildCatalog([...steps.values()], sources, { ...nothingIsLost, previous })
    const fresh = buildCatalog([...steps.values()], sources, nothingIsLost)
    t.same([...previous.models], [...fresh.models], `turn ${turn}`)
  }
})
