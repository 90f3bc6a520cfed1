import { createLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import {
  collect,
  ensembleRevision,
  modelRevision,
  oneToOne,
  quiet,
  request,
  ScriptedReplicas,
  type ScriptedVersion,
  settle,
  step,
} from '../testing/index.ts'
import { AcceptedLink, type RevisionListener } from './accepted-link.ts'
import type { RevisionObject } from './accepted-revisions.ts'

const IO = oneToOne
const WIDER = IO.replace('name: "Y" data_type: TYPE_FP32', 'name: "Y" data_type: TYPE_FP64')
const ensemble = (...models: string[]): string => `
  platform: "ensemble"
  input { name: "X" data_type: TYPE_FP32 dims: -1 }
  output { name: "Y" data_type: TYPE_FP32 dims: -1 }
  ensemble_scheduling { ${models
    .map((model, i) =>
      step(model, i === 0 ? 'X' : `t${i}`, i === models.length - 1 ? 'Y' : `t${i + 1}`),
    )
    .join(' ')} }`

/** A router that serves what a test accepts, over replicas that a test drives. */
function open() {
  const lines: string[] = []
  const log = createLogger({
    level: 'info',
    name: 'test',
    destination: { write: (line: string) => lines.push(line) },
  })
  const replicas = new ScriptedReplicas({ servesAccepted: true, awaitsSteps: true, log })
  const { router } = replicas
  let hearer: RevisionListener | undefined
  let isClosed = false
  const link = new AcceptedLink({
    view: router.view,
    log,
    watch: (heard) => {
      hearer = heard
      return {
        close: async () => {
          isClosed = true
        },
      }
    },
  })
  const tell = (type: 'added' | 'updated' | 'deleted', ...objects: RevisionObject[]): void => {
    for (const object of objects) hearer?.onEvent({ type, object })
  }
  return {
    replicas,
    router,
    link,
    isClosed: () => isClosed,
    sync: () => hearer?.onSynced(),
    accept: async (...objects: RevisionObject[]) => {
      tell('added', ...objects)
      await settle()
    },
    remove: async (...objects: RevisionObject[]) => {
      tell('deleted', ...objects)
      await settle()
    },
    logged: (msg: string) =>
      lines.map((line) => JSON.parse(line)).filter((one) => one.message === msg),
    ask: async (model: string): Promise<string> => {
      replicas.deliveries.length = 0
      try {
        await collect(responsesTo(router.resolve(model, ''), request('X'), quiet))
        return replicas.deliveries.map(({ envelope }) => envelope.revision).join(' ')
      } catch (error) {
        return ServeError.from(error).reason
      }
    },
  }
}

const m = (revision: string, config = IO): ScriptedVersion => ({ model: 'm', revision, config })
const MODEL_1 = modelRevision({ name: 'm-1', model: 'm', config: IO, versions: { 1: 'old' } })
const MODEL_2 = modelRevision({
  name: 'm-2',
  model: 'm',
  config: IO,
  revision: 2,
  versions: { 1: 'new' },
})
const ENSEMBLE_1 = ensembleRevision({
  name: 'e-1',
  model: 'e',
  config: ensemble('m'),
  models: { m: IO },
})
const ENSEMBLE_2 = ensembleRevision({
  name: 'e-2',
  model: 'e',
  config: ensemble('m', 'm'),
  revision: 2,
  models: { m: IO },
})

await t.test('a rollout moves traffic only between accepted revisions', async (t) => {
  const { replicas, router, sync, accept, remove, ask } = open()
  sync()
  replicas.serve('a', [m('old')])
  t.equal(await ask('m'), 'MODEL_NOT_FOUND', 'announced and described, but never accepted')
  t.same(router.view.served, { models: [], accepted: [] })
  await accept(MODEL_1)
  t.equal(await ask('m'), 'old')
  t.same(router.view.served, {
    models: [{ name: 'm', versions: [{ version: 1, revisions: ['old'] }] }],
    accepted: ['m-1'],
  })
  replicas.serve('b', [m('new')])
  replicas.serve('c', [m('new')])
  t.equal(await ask('m'), 'old', 'most replicas have an edit that was not accepted')
  t.same(router.view.served.accepted, ['m-1'])
  await accept(MODEL_2)
  t.equal(await ask('m'), 'new')
  t.same(router.view.served, {
    models: [{ name: 'm', versions: [{ version: 1, revisions: ['new', 'old'] }] }],
    accepted: ['m-1', 'm-2'],
  })
  await remove(MODEL_1)
  replicas.kill('b')
  replicas.kill('c')
  t.equal(await ask('m'), 'STEP_UNAVAILABLE', 'the old replica is still there')
  t.same(router.view.served, { models: [], accepted: [] })
  replicas.serve('b', [m('new')])
  t.equal(await ask('m'), 'new')
  await remove(MODEL_2)
  t.equal(await ask('m'), 'MODEL_NOT_FOUND', 'the Model is gone')
})

await t.test('a request that pinned a revision finishes with it', async (t) => {
  const { replicas, sync, accept, remove, ask } = open()
  sync()
  replicas.serve('a', [m('old')])
  replicas.serve('b', [m('new')])
  await accept(MODEL_1, ENSEMBLE_2)
  let steps = 0
  replicas.script = async () => {
    steps += 1
    if (steps > 1) return
    await accept(MODEL_2)
    await remove(MODEL_1)
  }
  t.equal(await ask('e'), 'old old')
  t.equal(await ask('e'), 'new new')
})

await t.test('a replica that describes a revision otherwise gets no requests', async (t) => {
  const { replicas, router, sync, accept, ask, logged } = open()
  sync()
  await accept(MODEL_1)
  replicas.serve('odd', [m('old', WIDER)])
  t.equal(await ask('m'), 'STEP_UNAVAILABLE')
  t.same(router.view.served, { models: [], accepted: [] })
  replicas.serve('good', [m('old')])
  for (let i = 0; i < 4; i++) {
    t.equal(await ask('m'), 'old')
    t.same(new Set(replicas.deliveries.map(({ replica }) => replica)), new Set(['good']))
  }
  t.same(router.view.served.accepted, ['m-1'])
  t.match(logged('replica describes an accepted revision with another configuration'), [
    { replica: 'odd', model: 'm', version: 1, revision: 'old' },
  ])
  t.equal(logged('replica describes an accepted revision with another configuration').length, 1)
})

await t.test('a replica that is announced and not described yet gets no requests', async (t) => {
  const { replicas, sync, accept, ask } = open()
  sync()
  await accept(MODEL_1)
  replicas.serve('a', [m('old')])
  replicas.serve('b', [m('old', WIDER)], { quietly: true })
  replicas.heartbeat('b', [['m', 1, 'old']])
  for (let i = 0; i < 4; i++) await ask('m')
  t.same(
    replicas.deliveries.map(({ replica }) => replica),
    ['a'],
  )
})

await t.test('of an Ensemble the newest counts, once its models are there', async (t) => {
  const { replicas, router, sync, accept, remove, ask } = open()
  sync()
  await accept(MODEL_1, ENSEMBLE_1)
  t.equal(await ask('e'), 'STEP_UNAVAILABLE')
  t.same(router.view.served.accepted, [])
  t.equal(router.isReady(), false)
  replicas.serve('a', [m('old')])
  t.equal(await ask('e'), 'old')
  t.equal(router.isReady(), true)
  t.same(router.view.served.accepted, ['e-1', 'm-1'])
  await accept(ENSEMBLE_2)
  t.equal(await ask('e'), 'old old')
  t.same(router.view.served.accepted, ['e-2', 'm-1'])
  await remove(ENSEMBLE_2)
  t.equal(await ask('e'), 'old')
  await remove(ENSEMBLE_1)
  t.equal(await ask('e'), 'MODEL_NOT_FOUND')
})

await t.test('an ensemble whose model has changed is not what was accepted', async (t) => {
  const { replicas, router, sync, accept, ask } = open()
  sync()
  await accept(
    MODEL_1,
    modelRevision({ name: 'm-3', model: 'm', config: WIDER, versions: { 1: 'wide' } }),
    ENSEMBLE_1,
    ensembleRevision({
      name: 'out-1',
      model: 'out',
      config: ensemble('e'),
      models: { e: ensemble('m') },
    }),
  )
  replicas.serve('a', [m('old')])
  t.same(router.view.served.accepted, ['e-1', 'm-1', 'out-1'])
  replicas.serve('a', [m('wide', WIDER)])
  t.same(router.view.served.accepted, ['m-3'])
  t.not(await ask('e'), 'wide')
  replicas.serve('a', [m('old')])
  t.same(router.view.served.accepted, ['e-1', 'm-1', 'out-1'])
  t.equal(await ask('out'), 'old')
})

await t.test('broken data leaves what was there, and everything else', async (t) => {
  const { replicas, router, sync, accept, ask, logged } = open()
  const broken: RevisionObject[] = [
    { ...ENSEMBLE_2, data: { kind: 'Ensemble' } },
    { ...MODEL_1, data: 5 },
    { ...MODEL_2, metadata: { ...MODEL_2.metadata, name: 'x-1' } },
    ensembleRevision({
      name: 'y-1',
      model: 'y',
      config: ensemble('m', 'm'),
      models: { m: IO },
      beyond: { steps: [{ after: [1] }] },
    }),
  ]
  await accept(MODEL_1, ENSEMBLE_1)
  sync()
  replicas.serve('a', [m('old')])
  const [, , other] = broken
  const renamed = { ...other, data: { ...Object(other?.data), modelName: 'x' } }
  await accept(...broken.filter((one) => one !== other), { ...MODEL_2, ...renamed })
  t.equal(await ask('m'), 'old')
  t.equal(await ask('e'), 'old')
  t.same(router.view.served.accepted, ['e-1', 'm-1'])
  t.same(
    logged('accepted revision cannot be used').map(({ revision, error }) => [revision, error]),
    [
      ['e-2', 'accepted Ensemble: modelName: Invalid input: expected string, received undefined'],
      ['m-1', 'accepted revision: Invalid input: expected object, received number'],
      ['y-1', 'in ensemble y, steps wait for one another: step-0 -> step-1 -> step-0'],
      ['x-1', "config.name is 'm', want 'x' as modelName says"],
    ],
  )
})

await t.test('one served name is one resource’s, the one accepted first', async (t) => {
  const { replicas, sync, accept, remove, ask, logged } = open()
  sync()
  const other = ensembleRevision({
    name: 'other-1',
    model: 'm',
    config: ensemble('n'),
    models: { n: IO },
    createdAt: '2026-01-02T00:00:00Z',
  })
  const n = modelRevision({ name: 'n-1', model: 'n', config: IO, versions: { 1: 'n' } })
  await accept(n, other, MODEL_1)
  replicas.serve('a', [m('old'), { model: 'n', revision: 'n', config: IO }])
  t.equal(await ask('m'), 'old')
  await accept({ ...MODEL_2, metadata: { name: 'm-2', creationTimestamp: '2026-01-03T00:00:00Z' } })
  await remove(MODEL_1)
  replicas.serve('b', [m('new')])
  t.equal(await ask('m'), 'new', 'it keeps the name, although its oldest is younger now')
  t.match(logged('served name is taken by another resource'), [
    { model: 'm', kind: 'Ensemble', resource: 'other' },
  ])
  await remove(MODEL_2)
  t.equal(await ask('m'), 'n')
  t.equal(logged('served name is taken by another resource').length, 1)
})

/** As ENSEMBLE_1, with a built-in in place of the Model. */
function sigmoid(call?: object): RevisionObject {
  const { data, ...rest } = ENSEMBLE_1
  const { graph, models: _, ...accepted } = Object(data)
  const [{ inputs, outputs, ...step }] = graph.steps
  const built = {
    ...step,
    model: '/builtins',
    builtin: { name: 'sigmoid', options: {} },
    inputs: [{ ...inputs[0], name: 'input' }],
    outputs: [{ ...outputs[0], name: 'output' }],
    ...call,
  }
  const given = [{ ...graph.outputs[0], from: { kind: 'made', step: 0, output: 'output' } }]
  return {
    ...rest,
    data: { ...accepted, models: {}, graph: { ...graph, steps: [built], outputs: given } },
  }
}

await t.test(
  'an Ensemble that has an answer for lost built-ins is served without any',
  async (t) => {
    const { router, sync, accept, ask } = open()
    sync()
    await accept(sigmoid())
    t.equal(await ask('e'), 'STEP_UNAVAILABLE')
    t.same(router.view.served.accepted, [])
    const value = { datatype: 'FP32', shape: [1], value: [0] }
    const onError = { kind: 'default', outputs: [{ name: 'output', value }] }
    await accept(sigmoid({ call: { onError } }))
    t.same(router.view.served.accepted, ['e-1'])
  },
)

await t.test(
  'nothing is served before everything is known, and changes come together',
  async (t) => {
    const { replicas, router, link, sync, accept, ask, logged } = open()
    replicas.serve('a', [m('old')])
    await accept(MODEL_1)
    t.equal(link.hasSynced, false)
    t.equal(await ask('m'), 'MODEL_NOT_FOUND')
    await accept(ENSEMBLE_1)
    sync()
    t.equal(link.hasSynced, true)
    t.equal(await ask('e'), 'old')
    t.match(logged('accepted revisions read'), [{ models: 1, ensembles: 1 }])
    const before = router.view.served
    await link.close()
    await accept(MODEL_2, ENSEMBLE_2)
    t.same(router.view.served, before)
  },
)
