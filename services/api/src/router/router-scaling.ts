import { z } from 'zod'
import { BOUNDS_IN_ORDER, noneTakesReplicas, ScalingFields } from '../model/model-scaling.ts'
import { cel } from '../schema/cel.ts'
import { whole } from '../schema/fields.ts'

/*
 * Who decides on the replicas of a router, in the form of a Model's `scaling`.
 */

const MAX_REPLICAS = 100

const replicas = (description: string) =>
  cel(whole(0, MAX_REPLICAS, description), {
    rule: 'self > 0',
    message: 'got 0, want at least 1: without a router no request of the namespace is answered',
  })

const Fields = ScalingFields.omit({ idleAfter: true }).extend({
  provider: z
    .enum(['Native', 'HPA', 'None'])
    .optional()
    .describe(
      'Who decides: HPA (a HorizontalPodAutoscaler that the operator creates) or None (you, or an autoscaler of your own). Native is for Models. Default HPA where one of minReplicas, maxReplicas, metrics and behavior is set, else None.',
    ),
  minReplicas: replicas(
    'Fewest pods, 1 to 100. Default: --router-replicas of the operator, at most `maxReplicas`. Not with the provider None.',
  ).optional(),
  maxReplicas: replicas(
    'Most pods, 1 to 100. Default `minReplicas`. Not with the provider None.',
  ).optional(),
  replicas: replicas(
    'Pods with the provider None, 1 to 100; `kubectl scale` and an autoscaler of your own at the Router write this field. Default: --router-replicas of the operator.',
  ).optional(),
  target: ScalingFields.shape.target.describe('Only for Models: a router takes `metrics`.'),
  metrics: ScalingFields.shape.metrics.describe(
    'Metrics as in autoscaling/v2, with the provider HPA. Default: 700m of processor time per pod, which serves on one thread; less where a pod has a lower limit of CPU.',
  ),
  behavior: ScalingFields.shape.behavior.describe('Behaviour as in autoscaling/v2.'),
})

const HAS_BOUNDS =
  'has(self.minReplicas) || has(self.maxReplicas) || has(self.metrics) || has(self.behavior)'
const PROVIDER = `(has(self.provider) ? self.provider : ${HAS_BOUNDS} ? 'HPA' : 'None')`

export const RouterScaling = cel(
  Fields,
  BOUNDS_IN_ORDER,
  // Without a provider, the default fits what is set.
  noneTakesReplicas("(has(self.provider) ? self.provider : 'HPA')"),
  {
    rule: `${PROVIDER} != 'Native'`,
    message:
      'got Native, want HPA or None: Native counts requests that wait for a step, while a router is at its end when its processor time is',
    field: 'provider',
  },
  {
    rule: '!has(self.target)',
    message:
      'want no target: it counts requests that wait for a step, while a router is at its end when its processor time is; want metrics',
    field: 'target',
  },
  {
    rule: `!has(self.replicas) || ${PROVIDER} != 'HPA'`,
    message:
      'got it with the provider HPA, which decides on replicas itself: want minReplicas and maxReplicas; or the provider None alone, for an autoscaler of your own',
    field: 'replicas',
  },
).describe('How the number of pods is decided, and its bounds.')
export type RouterScaling = z.infer<typeof RouterScaling>
