import { parseFlags, silentLogger, systemClock } from '@tutti/chassis'
import t from 'tap'
import { OPERATOR_FLAGS } from '../operator-flags.ts'
import { memoryClient } from '../testing/memory-client.ts'
import { testMetrics } from '../testing/test-metrics.ts'
import type { ControllerContext } from './context.ts'
import { createControllers } from './index.ts'

await t.test(
  'every controller is made once, and reads each kind from as few caches as can be',
  async (t) => {
    const { metrics, runtime } = testMetrics()
    const { values: flags } = parseFlags(OPERATOR_FLAGS, ['--nats=tls://nats:4222'])
    const context: ControllerContext = {
      client: memoryClient(),
      openReflector: () => {
        throw new Error('no cache is started here')
      },
      events: { record: () => {} },
      metrics: runtime,
      scrapes: metrics,
      clock: systemClock,
      log: silentLogger,
      flags,
      namespace: 'tutti-system',
    }
    const { caches, controllers } = createControllers(context)
    const names = controllers.map(({ name }) => name).toSorted()
    t.same(names, [
      'builtins-scaling',
      'ensemble',
      'ensemble-pods',
      'ensemble-pods-scaling',
      'model',
      'model-scaling',
      'nats-servers',
      'router',
      'router-demand',
      'router-polling',
    ])
    const plurals = caches.map(({ resource }) => resource.plural)
    const twice = plurals.filter((plural, i) => plurals.indexOf(plural) !== i)
    // Those of the keys of NATS are one each by name, and what routers show to the outside is read whole.
    t.same([...new Set(twice)], ['secrets'])
    t.ok(
      ['models', 'ensembles', 'routers', 'httproutes'].every((plural) => plurals.includes(plural)),
    )
  },
)
