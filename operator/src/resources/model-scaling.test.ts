import t from 'tap'
import { mayHaveSeveral, planReplicas, toRouterScaling, toScaling } from './model-scaling.ts'

await t.test('defaults are filled in', async (t) => {
  const native = { provider: 'Native', min: 1, max: 1, upWindowMs: 0, downWindowMs: 300_000 }
  t.same(toScaling({}), native)
  t.same(toScaling({ scaling: { minReplicas: 2 } }), { ...native, min: 2, max: 2 })
  t.same(
    toScaling({
      scaling: {
        maxReplicas: 5,
        target: 8,
        behavior: { scaleUp: { stabilizationWindowSeconds: 10 } },
      },
    }),
    { ...native, max: 5, target: 8, upWindowMs: 10_000 },
  )
  t.same(toScaling({ scaling: { replicas: 1 } }), native, 'as the API server fills it in')
  for (const scaling of [{}, { replicas: 1 }]) {
    const none = { provider: 'None', replicas: 1 }
    t.same(toScaling({ scaling: { provider: 'None', ...scaling } }), none)
  }
  t.same(toScaling({ scaling: { provider: 'HPA', maxReplicas: 4 } }), {
    provider: 'HPA',
    min: 1,
    max: 4,
  })
})

await t.test('a Model that may sleep has its bounds only while it does not', (t) => {
  const scaling = toScaling({ scaling: { minReplicas: 0, idleAfter: '1m30s' } })
  t.match(scaling, { provider: 'Native', min: 1, max: 1, idleAfterMs: 90_000 })
  t.match(toScaling({ scaling: { minReplicas: 0 } }), { idleAfterMs: 300_000 })
  t.match(toScaling({ scaling: { minReplicas: 0, maxReplicas: 3 } }), { min: 1, max: 3 })
  t.equal(planReplicas(scaling, {}), 1, 'a new one starts once')
  t.equal(planReplicas(scaling, { live: 0 }), 0)
  t.equal(planReplicas(scaling, { live: 1, wanted: 0 }), 0)
  t.equal(planReplicas(scaling, { live: 0, wanted: 1 }), 1)
  t.equal(planReplicas(toScaling({}), { live: 0 }), 1, 'it may no longer sleep')
  t.end()
})

await t.test('a Router without bounds has a fixed number of pods, else an HPA', async (t) => {
  for (const [scaling, expected] of [
    [undefined, { provider: 'None', replicas: 2 }],
    [{}, { provider: 'None', replicas: 2 }],
    [{ provider: 'None' }, { provider: 'None', replicas: 2 }],
    [{ replicas: 5 }, { provider: 'None', replicas: 5 }],
    [{ provider: 'HPA' }, { provider: 'HPA', min: 2, max: 2 }],
    [{ maxReplicas: 8 }, { provider: 'HPA', min: 2, max: 8 }],
    [{ maxReplicas: 1 }, { provider: 'HPA', min: 1, max: 1 }],
    [{ minReplicas: 3 }, { provider: 'HPA', min: 3, max: 3 }],
    [{ behavior: {} }, { provider: 'HPA', min: 2, max: 2 }],
  ] as const) {
    t.same(toRouterScaling({ scaling }, 2), expected, JSON.stringify(scaling))
  }
})

await t.test('a change of the provider makes no jump', async (t) => {
  const native = toScaling({ scaling: { minReplicas: 1, maxReplicas: 5 } })
  t.equal(planReplicas(native, {}), 1)
  t.equal(planReplicas(native, { live: 4 }), 4)
  t.equal(planReplicas(native, { live: 9 }), 5)
  t.equal(planReplicas(native, { live: 4, wanted: 2 }), 2)
  t.equal(planReplicas(native, { live: 4, wanted: 9 }), 5)
  t.equal(planReplicas({ provider: 'HPA', min: 1, max: 4 }, { live: 3, wanted: 2 }), undefined)
  t.equal(planReplicas({ provider: 'None', replicas: 0 }, { live: 3 }), 0)
})

await t.test('a Model that is suspended has no pods, and gets them back', async (t) => {
  const none = { provider: 'None', replicas: 0 }
  for (const provider of ['Native', 'HPA', 'None'] as const) {
    t.same(toScaling({ suspend: true, scaling: { provider, minReplicas: 2 } }), none, provider)
  }
  t.equal(planReplicas(toScaling({ scaling: { minReplicas: 2 } }), { live: 0 }), 2)
  const hpa = { provider: 'HPA', min: 2, max: 4 } as const
  t.equal(planReplicas(hpa, { live: 0 }), 2, 'an HPA does nothing while there are none')
  t.equal(planReplicas(hpa, { live: undefined }), undefined)
})

await t.test('where there may be several pods', async (t) => {
  t.notOk(mayHaveSeveral(toScaling({})))
  t.ok(mayHaveSeveral(toScaling({ scaling: { maxReplicas: 2 } })))
  t.ok(mayHaveSeveral({ provider: 'None', replicas: 2 }))
  t.notOk(mayHaveSeveral({ provider: 'None', replicas: 1 }))
})
