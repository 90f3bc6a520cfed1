import { ServeError } from '@tutti/errors'
import { NO_TIMES } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { createStepRig } from '../testing/call-rig.ts'
import { ScriptedReplicas, toConfig } from '../testing/index.ts'
import { ReplicaCounts } from './replica-counts.ts'

const PARTS = { queueNs: 1e6, transferNs: 2e6, computeNs: 3e6 }

const call = (model: string) => ({ ensemble: '', step: '', target: { entry: { name: model } } })
const at = (replica: string) => ({ replica: { address: { replica } } })

/** A step that is hedged after 50 ms. */
function hedged(maxPercent = 100, replicas?: readonly string[]) {
  return createStepRig(
    { hedge: { afterMs: 50, maxPercent }, mayRunTwice: true },
    { ...(replicas && { replicas }) },
  )
}

await t.test('calls are counted by step and replica from the first reading on', async (t) => {
  const rig = hedged()
  const { router, attempts } = rig
  const ask = (): string => {
    const { length } = attempts
    rig.ask()
    return attempts[length]?.replica ?? ''
  }
  ask()
  attempts.at(-1)?.answer(1)
  t.same(router.replicaTotals(), [], 'no page has looked before')
  const answered = ask()
  attempts.at(-1)?.answer(1)
  const failed = ask()
  attempts.at(-1)?.fail(new ServeError('ENGINE_FAILED', 'no'), 'maybe', NO_TIMES)
  t.not(answered, failed)
  const step = { model: 'm', ensemble: 'e', step: 'only' }
  t.match(router.replicaTotals(), [
    { ...step, replica: answered, requests: 1, failures: 0 },
    { ...step, replica: failed, requests: 0, failures: 1 },
  ])
  rig.clock.advance(60_001)
  ask()
  attempts.at(-1)?.answer(1)
  t.same(router.replicaTotals(), [], 'without a page it counts no more')
  t.equal(rig.clock.pending, 0, 'and no timer waits for one')
})

await t.test('what a hedge has overtaken is no error of its replica', async (t) => {
  const rig = hedged()
  rig.router.replicaTotals()
  rig.ask()
  rig.clock.advance(50)
  rig.attempts[1]?.answer(1)
  const cancelled = new ServeError('CANCELLED', 'another replica has answered')
  rig.attempts[0]?.fail(cancelled, 'maybe')
  t.match(rig.router.replicaTotals(), [
    { requests: 1, failures: 0, replica: rig.attempts[1]?.replica },
  ])
  t.equal(rig.router.replicaTotals().length, 1)
})

await t.test('times are sums in milliseconds, and pairs are bounded', async (t) => {
  const counts = new ReplicaCounts({ now: () => 0 })
  counts.read()
  counts.answered(call('m'), at('a'), PARTS)
  counts.answered(call('m'), at('a'), PARTS)
  counts.answered(call('m'), undefined, PARTS)
  t.match(counts.read(), [{ requests: 2, queueMs: 2, transferMs: 4, computeMs: 6 }])
  for (let i = 0; i < 20_100; i += 1) counts.answered(call(`m${i}`), at('a'), PARTS)
  t.equal(counts.read().length, 20_000)
})

await t.test('names that look like others are not mixed up', async (t) => {
  const name = fc.string({
    unit: fc.constantFrom('a', ' ', '/', '<', '"', '\\', '\0'),
    maxLength: 3,
  })
  const calls = fc.array(fc.tuple(name, name, name, name), { maxLength: 12 })
  const property = fc.property(calls, (all) => {
    const counts = new ReplicaCounts({ now: () => 0 })
    counts.read()
    for (const [replica, model, ensemble, step] of all) {
      const call = { ensemble, step, target: { entry: { name: model } } }
      counts.answered(call, { replica: { address: { replica } } }, PARTS)
    }
    const wanted = Map.groupBy(all, (one) => JSON.stringify(one))
    const got = counts
      .read()
      .map((one) => [
        JSON.stringify([one.replica, one.model, one.ensemble, one.step]),
        one.requests,
      ])
    return (
      JSON.stringify(got) === JSON.stringify([...wanted].map(([key, some]) => [key, some.length]))
    )
  })
  t.doesNotThrow(() => fc.assert(property))
})

await t.test('replicas are shown with what they serve, and why they do not', async (t) => {
  const config = 'platform: "onnxruntime_onnx"'
  const foreign = [
    {
      member: 'old',
      role: 'step' as const,
      oldestProtocol: 9,
      newestProtocol: 9,
      models: ['m', 'n'],
    },
  ]
  const replicas = new ScriptedReplicas({ foreignSteps: () => foreign })
  const { router, directory } = replicas
  const shown = () => router.replicasOf(new Set(['m']))
  const broken = { version: 1, revision: '', state: 'UNAVAILABLE' as const, reason: 'Internal: no' }
  const ready = { version: 2, revision: 'r2', state: 'READY' as const, reason: '' }
  const versions = [broken, ready]
  const models = [
    { name: 'm', config: toConfig('m', config), labels: {}, versions, reason: '' },
    { name: 'other', labels: {}, versions: [ready], reason: '' },
  ]
  const control = { statistics: async () => [] }
  router.view.describe({ replica: 'a', host: 'pod-a', models }, control)
  const refused = [{ name: 'm', labels: {}, versions: [], reason: 'config.pbtxt:1: no' }]
  router.view.describe({ replica: 'b', models: refused }, control)
  router.view.describe({ replica: 'c', models: [] }, control)
  const load = { inFlight: 4, queued: 1, freeSlots: 1, freeBytes: 1 }
  directory.report('a', load)
  t.match(shown(), [
    {
      replica: 'a',
      host: 'pod-a',
      state: 'taking work',
      inFlight: 0,
      load: { inFlight: 4, queued: 1 },
      reachedOver: 'this process',
      versions: [
        { model: 'm', version: '1', revision: '', state: 'UNAVAILABLE', reason: 'Internal: no' },
        { model: 'm', version: '2', revision: 'r2', state: 'READY', reason: '' },
      ],
    },
    {
      replica: 'b',
      host: '',
      state: 'taking work',
      inFlight: 0,
      load: undefined,
      reachedOver: 'this process',
      versions: [
        {
          model: 'm',
          version: '',
          revision: '',
          state: 'UNAVAILABLE',
          reason: 'config.pbtxt:1: no',
        },
      ],
    },
    {
      replica: 'old',
      host: '',
      state: 'other protocol',
      inFlight: 0,
      load: undefined,
      reachedOver: '',
      versions: [
        { model: 'm', version: '', state: 'UNAVAILABLE', reason: /no version of the protocol/ },
      ],
    },
  ])
  t.equal(shown().length, 3)
  directory.suspect('a', true)
  t.equal(shown()[0]?.state, 'suspect')
  directory.suspect('a', false)
  directory.drain('a')
  router.view.announce('a', [['m', 2, 'r2']])
  t.match(shown()[0], { state: 'draining', versions: [{}, { state: 'IDLE', reason: /drains/ }] })
})
