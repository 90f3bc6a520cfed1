import { ServeError } from '@tutti/errors'
import type { Stored } from '@tutti/kube'
import * as fc from 'fast-check'
import t from 'tap'
import type { EnsembleObject, ModelObject, StepReference } from './resources.ts'
import { chooseTarget } from './targets.ts'

const meta = (name: string) => ({ name, uid: name, resourceVersion: '1', creationTimestamp: '' })

function model(name: string, modelName?: string): Stored<ModelObject> {
  const spec = modelName === undefined ? {} : { modelName }
  return { apiVersion: 'tutti.dev/v1alpha1', kind: 'Model', metadata: meta(name), spec }
}

function ensemble(name: string, steps: readonly string[]): Stored<EnsembleObject> {
  const written = steps.map(
    (step): StepReference =>
      step.startsWith('e/')
        ? { name: step, ensembleRef: { name: step.slice(2) } }
        : { name: step, modelRef: { name: step } },
  )
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Ensemble',
    metadata: meta(name),
    spec: { steps: written },
  }
}

function withBuiltin(
  name: string,
  builtin: NonNullable<StepReference['builtin']>,
): Stored<EnsembleObject> {
  return { ...ensemble(name, []), spec: { steps: [{ name: 'a', builtin }] } }
}

const NAMED = {
  models: [model('yolo', 'yolo_v8'), model('ocr'), model('both'), model('router')],
  ensembles: [
    ensemble('faces', ['yolo_v8', 'e/inner', 'missing']),
    ensemble('inner', ['ocr', 'yolo_v8', 'e/faces']),
    ensemble('both', ['ocr']),
  ],
}

await t.test('a name is one of the cluster, or the one that clients use', (t) => {
  for (const [text, title, models] of [
    ['yolo', 'Model yolo', ['yolo']],
    ['yolo_v8', 'Model yolo', ['yolo']],
    ['model/both', 'Model both', ['both']],
    ['models.tutti.dev/both', 'Model both', ['both']],
    ['model/router', 'Model router', ['router']],
    ['ensemble/both', 'Ensemble both', ['ocr']],
    ['faces', 'Ensemble faces', ['yolo', 'ocr']],
    ['router/router', 'the router', []],
  ] as const) {
    const target = chooseTarget(NAMED, text)
    t.equal(target?.title, title, text)
    t.same(
      target?.models.map(({ metadata }) => metadata.name),
      models,
      text,
    )
  }
  t.same(chooseTarget(NAMED, 'faces')?.missing, ['missing'])
  t.ok(chooseTarget({ models: [], ensembles: undefined }, 'router')?.isRouter)
  const pictures = ensemble('pictures', ['e/own', 'e/beside'])
  const own = withBuiltin('own', { name: 'resize' })
  const beside = withBuiltin('beside', { name: 'labelLookup', model: 'ocr' })
  const named = { ...NAMED, ensembles: [pictures, own, beside] }
  const found = (name: string) => {
    const { hasBuiltins, models, missing } = chooseTarget(named, name) ?? {}
    return [hasBuiltins, models?.length, missing?.length]
  }
  t.same(found('pictures'), [true, 1, 0], 'also of Ensembles below it')
  t.same(found('own'), [true, 0, 0])
  t.same(found('beside'), [false, 1, 0], 'it runs in the pods of the Model')
  for (const text of [
    'absent',
    'model/faces',
    'ensemble/yolo',
    'pod/yolo',
    'router/default',
    '',
    '/',
  ]) {
    t.equal(chooseTarget(NAMED, text), undefined, text)
  }
  t.throws(() => chooseTarget(NAMED, 'both'), {
    reason: 'FLAG_INVALID',
    message: "'both' is of more than one kind, want ensemble/both or model/both",
  })
  t.throws(() => chooseTarget(NAMED, 'router'), { message: /want model\/router or router\/router/ })
  t.end()
})

await t.test(
  'whatever is written, and whatever the steps name, it ends with a target or an error',
  (t) => {
    const name = fc.constantFrom('a', 'b', 'c', 'router', 'constructor')
    const text = fc.oneof(
      name,
      fc
        .tuple(fc.constantFrom('model', 'ensemble', 'router', 'pod'), name)
        .map((pair) => pair.join('/')),
      fc.string(),
    )
    const steps = fc.array(
      fc.oneof(
        name,
        name.map((one) => `e/${one}`),
      ),
    )
    const ensembles = fc.array(fc.tuple(name, steps).map(([one, list]) => ensemble(one, list)))
    const models = fc.array(fc.tuple(name, name).map(([one, served]) => model(one, served)))
    fc.assert(
      fc.property(text, fc.record({ ensembles, models }), (written, named) => {
        try {
          const target = chooseTarget(named, written)
          const found = target?.models.map(({ metadata }) => metadata) ?? []
          t.equal(new Set(found).size, found.length, 'each Model once')
        } catch (error) {
          t.ok(error instanceof ServeError && error.reason === 'FLAG_INVALID', String(error))
        }
      }),
    )
    t.end()
  },
)
