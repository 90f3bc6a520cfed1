import t from 'tap'
import { findModelWarnings } from './model-warnings.ts'

const three = { minReplicas: 3, maxReplicas: 5 }

await t.test('a budget that blocks every drain is a warning', async (t) => {
  for (const [disruptionBudget, scaling, got] of [
    [{ minAvailable: 1 }, undefined, 'minAvailable: got 1, .* has 1 pod, its fewest'],
    [{ minAvailable: 1 }, { replicas: 1 }, 'minAvailable: got 1, '],
    [{ minAvailable: '1%' }, {}, 'minAvailable: got 1%, '],
    [{ minAvailable: '100%' }, three, 'minAvailable: got 100%, .* has 3 pods, its fewest'],
    [{ minAvailable: '67%' }, three, 'minAvailable: got 67%, '],
    [{ minAvailable: 4 }, three, 'minAvailable: got 4, '],
    [{ minAvailable: 2 }, { provider: 'None', replicas: 2 }, 'minAvailable: got 2, '],
    [{ maxUnavailable: 0 }, three, 'maxUnavailable: got 0, '],
    [{ maxUnavailable: '0%' }, three, 'maxUnavailable: got 0%, '],
  ] as const) {
    const [warning = '', ...others] = findModelWarnings({ disruptionBudget, scaling })
    t.match(warning, new RegExp(`^disruptionBudget\\.${got}`))
    t.same(others, [])
  }
})

await t.test('one that lets a pod go is none', async (t) => {
  for (const [disruptionBudget, scaling] of [
    [undefined, undefined],
    [{ maxUnavailable: 1 }, undefined],
    [{ maxUnavailable: '1%' }, three],
    [{ minAvailable: 0 }, undefined],
    [{ minAvailable: 2 }, three],
    [{ minAvailable: '66%' }, three],
    [{ minAvailable: 1 }, { provider: 'None', replicas: 0 }],
  ] as const) {
    const spec = { ...(disruptionBudget && { disruptionBudget }), ...(scaling && { scaling }) }
    t.same(findModelWarnings(spec), [], JSON.stringify(spec))
  }
})
