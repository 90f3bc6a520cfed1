import type { ServedModel } from '@tutti/api'
import { readConfigGraph } from '@tutti/graph'
import type { ModelConfig } from '@tutti/model-config'
import * as fc from 'fast-check'
import t from 'tap'
import { chain, oneToOne, toConfig, toDefinition } from '../testing/index.ts'
import { buildCatalog } from './build-catalog.ts'
import { type Catalog, type CatalogEnsemble, EMPTY_CATALOG } from './catalog.ts'
import type { EnsembleSource } from './ensemble-source.ts'

function served(name: string, revision: string): ServedModel {
  const version = { version: 1, revision, state: 'READY' as const, reason: '' }
  return { name, config: toConfig(name, oneToOne), labels: {}, versions: [version], reason: '' }
}

function source(name: string, steps: readonly [string, string]): EnsembleSource {
  const definition = toDefinition(name, chain(...steps))
  return { name, definition, labels: {}, versions: [{ version: 1, revision: name }], reason: '' }
}

/** Without what an ensemble that is down was before. */
function shown({ models }: Catalog): readonly unknown[] {
  return [...models.values()].map((entry) => {
    if (entry.kind === 'model' || entry.plan !== undefined) return entry
    const { source: _before, ...rest } = entry
    return rest
  })
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
  t.same(kept, ['b', 'c', 'd', 'other', 'round', 'square'])
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
    t.same(shown(previous), shown(fresh), `turn ${turn}`)
  }
})

const TYPES = ['TYPE_FP32', 'TYPE_INT32', 'TYPE_BYTES'] as const
type Type = (typeof TYPES)[number]
type Change =
  | { readonly model: Type }
  | { readonly inner: Type | 'unreadable' }
  | { readonly outer: Type }
  | 'rebuild'

function typed<T extends ModelConfig>(config: T, data_type: Type): T {
  const retype = <U extends object>(tensors: readonly U[]) =>
    tensors.map((one) => ({ ...one, data_type }))
  return { ...config, input: retype(config.input), output: retype(config.output) }
}

function overOne(step: string): string {
  return `ensemble_scheduling { step { model_name: "${step}" model_version: -1
    input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }`
}

function make(name: string, step: string, type: Type): EnsembleSource {
  const text = oneToOne.replace('onnxruntime_onnx', 'ensemble') + overOne(step)
  const config = typed(toConfig(name, text), type)
  const definition = { config, graph: readConfigGraph(config) }
  return { name, definition, labels: {}, versions: [{ version: 1, revision: name }], reason: '' }
}

const TYPE = fc.constantFrom(...TYPES)
const CHANGE: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ model: TYPE }),
  fc.record({ inner: fc.oneof(TYPE, fc.constant('unreadable' as const)) }),
  fc.record({ outer: TYPE }),
  fc.constant('rebuild' as const),
)

/** The expectation which source is in force, for an ensemble whose sources differ in the type of their tensors. */
class Expected {
  wanted: Type | 'unreadable' = 'TYPE_FP32'
  /** That fitted last. */
  last: Type | undefined
  served: Type | undefined

  /** @param below - the type of what it is composed of; undefined if that is not served. */
  settle(below: Type | undefined): void {
    this.served = [this.wanted, this.last].find(
      (type) => type !== undefined && type !== 'unreadable' && type === below,
    ) as Type | undefined
    this.last = this.served ?? this.last
  }
}

await t.test('an ensemble stays as it was until its successor fits its models', async (t) => {
  const unreadable: EnsembleSource = { name: 'inner', labels: {}, versions: [], reason: 'line 1' }
  const property = (changes: readonly Change[], takesDown: boolean): void => {
    const [inner, outer] = [new Expected(), new Expected()]
    let model: Type = 'TYPE_FP32'
    let sources = [make('inner', 'a', model), make('outer', 'inner', model)]
    let previous = EMPTY_CATALOG
    for (const [order, change] of (['rebuild', ...changes] as const).entries()) {
      if (change !== 'rebuild') {
        if ('model' in change) model = change.model
        else if ('inner' in change) {
          inner.wanted = change.inner
          const next = change.inner === 'unreadable' ? unreadable : make('inner', 'a', change.inner)
          sources = sources.with(0, next)
        } else {
          outer.wanted = change.outer
          sources = sources.with(1, make('outer', 'inner', change.outer))
        }
      }
      const step = served('a', `${order}`)
      const models =
        step.config === undefined ? [] : [{ ...step, config: typed(step.config, model) }]
      previous = buildCatalog([{ models, order }], sources, { lost: () => [], previous, takesDown })
      inner.settle(model)
      outer.settle(inner.served)
      for (const [name, expected] of [
        ['inner', inner],
        ['outer', outer],
      ] as const) {
        const entry = previous.models.get(name) as CatalogEnsemble
        const type = entry.plan?.config.input[0]?.data_type
        t.equal(type, expected.served, `${name} after change ${order}`)
        const isPending = expected.served !== undefined && expected.served !== expected.wanted
        t.equal(entry.pending !== undefined, isPending)
        const isReady = entry.versions.some(({ state }) => state === 'READY')
        t.equal(isReady, expected.served !== undefined)
      }
    }
  }
  fc.assert(fc.property(fc.array(CHANGE, { maxLength: 12 }), fc.boolean(), property), {
    numRuns: 300,
  })
})

function classes(count: number): ModelConfig {
  return toConfig('m', oneToOne.replace(/(name: "Y".*dims:) -1/, `$1 ${count}`))
}

function overVersion(version: number, dims: number): EnsembleSource {
  const text = chain('m').replace(/(name: "OUT".*dims:) -1/, `$1 ${dims}`)
  const own = text.replace('model_version: -1', `model_version: ${version}`)
  const definition = toDefinition('e', own)
  return {
    name: 'e',
    definition,
    labels: {},
    versions: [{ version: 1, revision: 'e' }],
    reason: '',
  }
}

await t.test('a step that names a version has its outputs and labels', (t) => {
  const ready = { state: 'READY' as const, reason: '' }
  const own = { config: classes(3), labels: { Y: ['of 1'] } }
  const model: ServedModel = {
    name: 'm',
    config: classes(5),
    labels: { Y: ['of 2'] },
    versions: [
      { version: 1, revision: 'one', ...ready, own },
      { version: 2, revision: 'two', ...ready },
    ],
    reason: '',
  }
  const found = (version: number, dims: number): unknown => {
    const steps = [{ models: [model], order: 0 }]
    const entry = buildCatalog(steps, [overVersion(version, dims)]).models.get('e')
    return entry?.reason === '' ? entry.labels['OUT'] : entry?.reason
  }
  t.same(found(1, 3), ['of 1'])
  t.same(found(2, 5), ['of 2'])
  t.same(found(-1, 5), ['of 2'])
  t.match(found(1, 5), /OUT/)
  t.match(found(-1, 3), /OUT/)
  t.end()
})
