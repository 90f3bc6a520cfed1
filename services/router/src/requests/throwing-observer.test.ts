import { OBSERVED_EVENTS, ThrowingMetrics } from '@tutti/telemetry/testing'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import {
  chain,
  ensembleIo,
  floats,
  oneToOne,
  quiet,
  request,
  scriptedRouter,
  step,
} from '../testing/index.ts'

const outer = `${ensembleIo} ensemble_scheduling { ${step('inner', 'IN', 'OUT', { names: ['IN', 'OUT'] })} }`

for (const event of OBSERVED_EVENTS) {
  await t.test(`an observer that throws at ${event} costs no request to an ensemble`, async (t) => {
    const { router } = await scriptedRouter({
      metrics: new ThrowingMetrics(event),
      ensembles: { inner: chain('one'), outer },
      models: { one: { config: oneToOne, run: () => new Map([['Y', floats('Y', [1])]]) } },
    })
    for (const name of ['inner', 'outer']) {
      const responses = responsesTo(router.resolve(name, ''), request('IN', [1]), quiet)
      for await (const response of responses) t.match(response, { final: true })
    }
    t.match(await router.statistics('inner', ''), [{ success: { count: 2n } }])
    t.same(router.memory, { count: 0, bytesInUse: 0 })
    await router.whenUnpinned({ model: 'one', version: 1, revision: 'revision-1' })
  })
}
