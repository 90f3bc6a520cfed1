import { setTimeout as delay } from 'node:timers/promises'
import type { StepLoad } from '@tutti/api'
import { createMetrics, silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import type { PodClient } from '../pods/pod-client.ts'
import { ReplicaScaler, type ScaledModel } from './replica-scaler.ts'

const POD = { namespace: 'a', name: 'p', ip: '127.0.0.1' }

function model(o: Partial<ScaledModel> = {}): ScaledModel {
  const scaling = {
    provider: 'Native' as const,
    min: 1,
    max: 5,
    upWindowMs: 0,
    downWindowMs: 0,
  }
  return {
    key: 'a/m',
    namespace: 'a',
    uid: 'u',
    modelNames: ['m'],
    scaling,
    replicas: 1,
    pods: [POD],
    ...o,
  }
}

function rig(t: Test) {
  const clock = createManualClock()
  const state = {
    models: [model()],
    load: new Error('away') as StepLoad | Error,
    asked: 0,
    wanted: '',
  }
  const decisions: string[] = []
  const client: PodClient = {
    servedByRouter: () => Promise.reject(new Error('not asked here')),
    startOfStep: () => Promise.reject(new Error('not asked here')),
    servedByStep: () => Promise.reject(new Error('not asked here')),
    wantedByRouter: () => Promise.reject(new Error('not asked here')),
    loadOfStep: async ({ namespace }) => {
      state.asked += 1
      if (namespace === 'mute') return await new Promise<never>(() => {})
      if (state.load instanceof Error) throw state.load
      return state.load
    },
  }
  const scaler = new ReplicaScaler({
    name: 'model-scaling',
    client,
    clock,
    log: silentLogger,
    models: () => state.models,
    onDecision: (key) => decisions.push(key),
    isWanted: (_namespace, name) => state.wanted === name,
    scalings: createMetrics().counter({ name: 'x_total', help: 'x', labels: ['direction'] }),
  })
  scaler.start()
  t.teardown(() => scaler.stop())
  const look = async (): Promise<void> => {
    clock.advance(15_000)
    await scaler.drained()
    // The next look is scheduled just after the one before has ended.
    await delay(0)
  }
  return { clock, state, decisions, scaler, look }
}

const loadOf = (inFlight: number): StepLoad => ({
  models: [{ name: 'm', inFlight, queued: 0, slots: 1 }],
})

await t.test('a decision is told once, and stays until the next', async (t) => {
  const { state, decisions, scaler, look } = rig(t)
  state.load = loadOf(3)
  await look()
  t.equal(scaler.wanted('a/m', 'u'), 3)
  await look()
  t.same(decisions, ['a/m'])
  state.load = loadOf(0)
  await look()
  t.equal(scaler.wanted('a/m', 'u'), 1)
  t.same(decisions, ['a/m', 'a/m'])
})

await t.test('a pod that does not answer changes nothing', async (t) => {
  const { state, decisions, scaler, look } = rig(t)
  state.models = [model({ replicas: 4 })]
  await look()
  t.equal(scaler.wanted('a/m', 'u'), 4)
  state.load = { models: [] }
  await look()
  t.equal(scaler.wanted('a/m', 'u'), 4)
  t.same(decisions, [])
})

await t.test('another Model of the name begins anew, one that is gone is forgotten', async (t) => {
  const { state, scaler, look } = rig(t)
  state.load = loadOf(3)
  await look()
  t.equal(scaler.wanted('a/m', 'other'), undefined)
  state.models = [model({ uid: 'other', replicas: 2 })]
  state.load = new Error('away')
  await look()
  t.equal(scaler.wanted('a/m', 'other'), 2)
  state.models = []
  await look()
  t.equal(scaler.wanted('a/m', 'other'), undefined)
})

await t.test('a Model whose bounds leave no choice is not asked', async (t) => {
  const { state, look } = rig(t)
  state.models = [model({ scaling: { ...model().scaling, max: 1 } })]
  await look()
  t.equal(state.asked, 0)
})

/** A Model that may sleep, after a minute. */
const sleeper = (o: Partial<ScaledModel> = {}): ScaledModel =>
  model({ scaling: { ...model().scaling, max: 1, idleAfterMs: 60_000 }, ...o })

const countOf = (requests: number, inFlight = 0): StepLoad => ({
  models: [{ name: 'm', inFlight, queued: 0, slots: 1, requests }],
})

await t.test(
  'a Model that may sleep has no pods once no request came for long enough',
  async (t) => {
    const { state, decisions, scaler, look } = rig(t)
    state.models = [sleeper()]
    state.load = countOf(7)
    for (let i = 0; i < 4; i++) await look()
    t.equal(scaler.wanted('a/m', 'u'), 1, 'idle for 45 s')
    state.load = countOf(8)
    for (let i = 0; i < 4; i++) await look()
    t.equal(scaler.wanted('a/m', 'u'), 1, 'a request came between two looks')
    state.wanted = 'm'
    for (let i = 0; i < 3; i++) await look()
    t.equal(scaler.wanted('a/m', 'u'), 1, 'requests wait for it')
    state.wanted = ''
    for (let i = 0; i < 5; i++) await look()
    t.equal(scaler.wanted('a/m', 'u'), 0)
    t.same(decisions, ['a/m'])
  },
)

await t.test('it sleeps on until it is woken, and is then awake for as long', async (t) => {
  const { state, decisions, scaler, look } = rig(t)
  state.models = [sleeper({ replicas: 0, pods: [] })]
  await look()
  t.equal(scaler.wanted('a/m', 'u'), 0)
  scaler.wake(state.models, new Set(['other']))
  t.equal(scaler.wanted('a/m', 'u'), 0)
  scaler.wake(state.models, new Set(['m']))
  t.equal(scaler.wanted('a/m', 'u'), 1, 'at once')
  scaler.wake(state.models, new Set(['m']))
  t.same(decisions, ['a/m'], 'once')
  for (let i = 0; i < 10; i++) await look()
  t.equal(scaler.wanted('a/m', 'u'), 1, 'its pod has not started yet')
  state.models = [sleeper()]
  state.load = countOf(0)
  for (let i = 0; i < 4; i++) await look()
  t.equal(scaler.wanted('a/m', 'u'), 1, 'it has just started')
  await look()
  t.equal(scaler.wanted('a/m', 'u'), 0)
})

await t.test('a Model that always has pods is not woken', (t) => {
  const { scaler, decisions } = rig(t)
  scaler.wake([model({ replicas: 0 })], new Set(['m']))
  t.same(decisions, [])
  t.end()
})

await t.test('a namespace of silent pods delays the scaling of no other', async (t) => {
  const { clock, state, scaler } = rig(t)
  const silent = Array.from({ length: 1000 }, (_, at) =>
    model({ key: `mute/${at}`, namespace: 'mute', pods: [{ ...POD, namespace: 'mute' }] }),
  )
  state.models = [...silent, model()]
  state.load = loadOf(3)
  clock.advance(15_000)
  await delay(0)
  t.equal(scaler.wanted('a/m', 'u'), 3)
  state.load = loadOf(0)
  clock.advance(15_000)
  await delay(0)
  t.equal(scaler.wanted('a/m', 'u'), 1, 'and not the next time')
  t.equal(state.asked, 8 + 2)
})
