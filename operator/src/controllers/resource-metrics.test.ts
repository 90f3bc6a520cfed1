import type { Condition } from '@tutti/api'
import { createMetrics } from '@tutti/chassis'
import { toKeyString } from '@tutti/kube'
import t from 'tap'
import { createResourceMetrics } from './resource-metrics.ts'

type Caches = Parameters<typeof createResourceMetrics>[1]

function ready(status: Condition['status'], reason: string): readonly Condition[] {
  return [{ type: 'Ready', status, reason, message: '', lastTransitionTime: '' }]
}

/** Lists what a scrape shows of resources by kind, as `name{labels} value`. */
async function seriesOf(resources: Readonly<Partial<Record<keyof Caches, readonly object[]>>>) {
  const metrics = createMetrics()
  const list = (kind: keyof Caches) => ({ list: () => resources[kind] ?? [] })
  const deployments = new Map(
    (resources.deployments ?? []).map((one) => [toKeyString(Object(one).metadata), one]),
  )
  const caches = {
    models: list('models'),
    ensembles: list('ensembles'),
    routers: list('routers'),
    deployments,
  }
  // As caches hold them; the metrics read these parts only.
  createResourceMetrics(metrics, caches as unknown as Caches)
  const lines = (await metrics.render()).split('\n')
  return lines.filter((line) => line !== '' && !line.startsWith('#'))
}

const metadata = (name: string) => ({ namespace: 'x', name })

await t.test('only what is wrong has a series', async (t) => {
  const series = await seriesOf({
    models: [
      { metadata: metadata('new') },
      { metadata: metadata('good'), status: { conditions: ready('True', 'Ready') } },
      {
        metadata: metadata('bad'),
        status: {
          conditions: ready('False', 'NotFound'),
          desiredReplicas: 3,
          replicas: 2,
          readyReplicas: 1,
        },
      },
      {
        metadata: metadata('idle'),
        status: { conditions: ready('False', 'NoReplicas'), desiredReplicas: 0, readyReplicas: 0 },
      },
    ],
    ensembles: [
      { metadata: metadata('e'), status: { conditions: ready('Unknown', 'StepsNotReady') } },
    ],
    routers: [
      {
        metadata: metadata('default'),
        status: { conditions: ready('True', 'Ready'), replicas: 2, readyReplicas: 1 },
      },
    ],
    deployments: [{ metadata: metadata('tutti-router'), spec: { replicas: 2 } }],
  })
  t.same(series, [
    'tutti_operator_resource_not_ready{kind="Model",resource_namespace="x",name="bad",reason="NotFound"} 1',
    'tutti_operator_resource_not_ready{kind="Ensemble",resource_namespace="x",name="e",reason="StepsNotReady"} 1',
    'tutti_operator_replicas_missing{kind="Model",resource_namespace="x",name="bad"} 2',
    'tutti_operator_replicas_missing{kind="Router",resource_namespace="x",name="default"} 1',
  ])
})

await t.test('a Router without pods, because they cannot be made, lacks all of them', async (t) => {
  const routers = [
    {
      metadata: metadata('default'),
      status: { conditions: ready('False', 'NoRouters'), replicas: 0, readyReplicas: 0 },
    },
  ]
  const deployments = [{ metadata: metadata('tutti-router'), spec: { replicas: 2 } }]
  t.same(await seriesOf({ routers, deployments }), [
    'tutti_operator_resource_not_ready{kind="Router",resource_namespace="x",name="default",reason="NoRouters"} 1',
    'tutti_operator_replicas_missing{kind="Router",resource_namespace="x",name="default"} 2',
  ])
})

await t.test('without resources there is none', async (t) => {
  t.same(await seriesOf({}), [])
})
