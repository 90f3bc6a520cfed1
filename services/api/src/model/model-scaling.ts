import { z } from 'zod'
import { type CelRule, cel, listAtomic, mapOf, text, told } from '../schema/cel.ts'
import { dnsLabel, duration, Quantity, whole } from '../schema/fields.ts'

/*
 * Who decides on the replicas of a Model. `metrics` and `behavior` are those of autoscaling/v2, word for word.
 */

const MAX_REPLICAS = 1000

/**
 * The default of `replicas`, as in a Deployment. The API server fills it in for every provider: the scale subresource answers
 * 500 for an object without a number, and refuses a negative number.
 */
export const DEFAULT_REPLICAS = 1

const LabelSelector = z.strictObject({
  matchLabels: mapOf(text({ max: 63 }), { max: 16 }).optional(),
  matchExpressions: listAtomic(
    z.strictObject({
      key: text({ min: 1, max: 317 }),
      operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
      values: listAtomic(text({ max: 63 }), { max: 16 }).optional(),
    }),
    { max: 16 },
  ).optional(),
})

const MetricIdentifier = z.strictObject({
  name: text({ min: 1, max: 253 }).describe('Name of the metric.'),
  selector: LabelSelector.optional(),
})

const MetricTarget = z.strictObject({
  type: z.enum(['Utilization', 'Value', 'AverageValue']),
  value: Quantity.optional(),
  averageValue: Quantity.optional(),
  averageUtilization: z.int().min(1).max(1_000_000).optional(),
})

/** A metric's `type` with a small letter names the member that it wants. */
const SOURCES = ['resource', 'containerResource', 'pods', 'object', 'external'] as const
const typeOf = (source: string): string => source.charAt(0).toUpperCase() + source.slice(1)

const MetricFields = z.strictObject({
  type: z.enum(['Resource', 'ContainerResource', 'Pods', 'Object', 'External']),
  resource: z.strictObject({ name: text({ min: 1, max: 317 }), target: MetricTarget }).optional(),
  containerResource: z
    .strictObject({
      name: text({ min: 1, max: 317 }),
      container: dnsLabel('Name of the container; `main` is the one that serves.'),
      target: MetricTarget,
    })
    .optional(),
  pods: z.strictObject({ metric: MetricIdentifier, target: MetricTarget }).optional(),
  object: z
    .strictObject({
      describedObject: z.strictObject({
        apiVersion: text({ max: 317 }).optional(),
        kind: text({ min: 1, max: 63 }),
        name: text({ min: 1, max: 253 }),
      }),
      metric: MetricIdentifier,
      target: MetricTarget,
    })
    .optional(),
  external: z.strictObject({ metric: MetricIdentifier, target: MetricTarget }).optional(),
})

const MetricSpec = cel(MetricFields, {
  rule: SOURCES.map((one) => `(self.type == '${typeOf(one)}') == has(self.${one})`).join(' && '),
  message: 'want the source that `type` names, and no other',
  messageExpression: "'got the type ' + self.type + ', want the source of that type and no other'",
})

const ScalingRules = z.strictObject({
  stabilizationWindowSeconds: whole(
    0,
    3600,
    'Seconds for which the most careful recommendation counts. Default 0 up, 300 down.',
  ).optional(),
  selectPolicy: z.enum(['Max', 'Min', 'Disabled']).optional(),
  policies: listAtomic(
    z.strictObject({
      type: z.enum(['Pods', 'Percent']),
      value: z.int().min(1).max(1_000_000),
      periodSeconds: z.int().min(1).max(1800),
    }),
    { max: 8 },
  ).optional(),
  tolerance: Quantity.optional().describe(
    'Largest difference, as a share, that does not scale, e.g. 0.05. With the provider HPA only.',
  ),
})

const Behavior = z.strictObject({
  scaleUp: ScalingRules.optional().describe('How replicas are added.'),
  scaleDown: ScalingRules.optional().describe('How replicas are taken away.'),
})

/** The fields of `scaling`, in a Model and in a Router. */
export const ScalingFields = z.strictObject({
  provider: z
    .enum(['Native', 'HPA', 'None'])
    .optional()
    .describe(
      'Who decides: Native (the operator, by requests in flight and queued), HPA (a HorizontalPodAutoscaler that the operator creates from `metrics`) or None (you, or an autoscaler of your own). Default Native.',
    ),
  minReplicas: whole(
    0,
    MAX_REPLICAS,
    'Fewest replicas. 0, with the provider Native: no pods while no request comes; the first request starts one and waits for it. Default 1. Not with the provider None.',
  ).optional(),
  maxReplicas: whole(
    1,
    MAX_REPLICAS,
    'Most replicas. Default `minReplicas`, at least 1. Not with the provider None.',
  ).optional(),
  idleAfter: duration(
    'Time without a request after which the pods go, with `minReplicas: 0` only. Default 5m.',
  ).optional(),
  replicas: whole(
    0,
    MAX_REPLICAS,
    'Replicas with the provider None; `kubectl scale` and an autoscaler of your own at the Model write this field. Default 1, which other providers ignore.',
  )
    .meta({ default: DEFAULT_REPLICAS })
    .optional(),
  target: whole(
    1,
    1_000_000,
    'Requests in flight and queued that are wanted per replica. Only with the provider Native. Default: as many as a replica executes at once.',
  ).optional(),
  metrics: listAtomic(MetricSpec, { min: 1, max: 8 })
    .optional()
    .describe(
      'Metrics as in autoscaling/v2. The provider HPA requires them; no other provider takes them.',
    ),
  behavior: Behavior.optional().describe(
    'Behaviour as in autoscaling/v2. The provider Native takes the stabilisation windows only.',
  ),
})

type Scaling = z.infer<typeof ScalingFields>

const providerOf = (scaling: Scaling): string => scaling.provider ?? 'Native'
const PROVIDER = "(has(self.provider) ? self.provider : 'Native')"

const DECIDES_ITSELF = `which decides on replicas itself: want minReplicas and maxReplicas, and ${DEFAULT_REPLICAS} here, the default; or the provider None, for an autoscaler of your own`

const onlyWindow = (rules: string): string =>
  `(!has(self.behavior.${rules}) || !(has(self.behavior.${rules}.selectPolicy) || has(self.behavior.${rules}.policies)))`

/** CEL does not see quantities. */
const WithTolerance = told<typeof ScalingFields>(ScalingFields, {
  text: (s) =>
    `got it with the provider ${providerOf(s)}, which takes stabilizationWindowSeconds only`,
  field: 'behavior',
  holds: ({ behavior = {}, ...s }) =>
    providerOf(s) === 'HPA' ||
    [behavior.scaleUp, behavior.scaleDown].every((rules) => rules?.tolerance === undefined),
})

/** Rule of a Model and of a Router: the bounds. */
export const BOUNDS_IN_ORDER: CelRule = {
  rule: '!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas',
  message: 'want minReplicas of at most maxReplicas',
  ownMessageExpression:
    "'got minReplicas ' + string(self.minReplicas) + ', want at most maxReplicas ' + string(self.maxReplicas)",
  field: 'minReplicas',
}

/** Rule of a Model and of a Router. @param provider - of `self` in CEL, with its default. */
export function noneTakesReplicas(provider: string): CelRule {
  return {
    rule: `${provider} != 'None' || !(has(self.minReplicas) || has(self.maxReplicas) || has(self.target) || has(self.metrics) || has(self.behavior))`,
    message: 'the provider None takes `replicas` only',
    field: 'provider',
  }
}

const Scaled = cel(
  WithTolerance,
  BOUNDS_IN_ORDER,
  noneTakesReplicas(PROVIDER),
  {
    rule: `!has(self.minReplicas) || self.minReplicas > 0 || ${PROVIDER} != 'HPA'`,
    message:
      'got 0 with the provider HPA, want at least 1: an HPA measures pods, so without any it never starts the first one; want the provider Native for 0',
    field: 'minReplicas',
  },
  {
    rule: `!has(self.idleAfter) || (has(self.minReplicas) && self.minReplicas == 0)`,
    message: 'want it with minReplicas 0 only: other Models always have a pod',
    field: 'idleAfter',
  },
  {
    rule: `!has(self.replicas) || self.replicas == ${DEFAULT_REPLICAS} || ${PROVIDER} == 'None'`,
    message:
      'want `replicas` with the provider None only; Native and HPA take minReplicas, maxReplicas',
    messageExpression: `'got it with the provider ' + ${PROVIDER} + ', ${DECIDES_ITSELF}'`,
    field: 'replicas',
  },
  {
    rule: `!has(self.target) || ${PROVIDER} != 'HPA'`,
    message: 'want `target` with the provider Native only; HPA takes metrics',
    field: 'target',
  },
  {
    rule: `has(self.metrics) == (${PROVIDER} == 'HPA') || ${PROVIDER} == 'None'`,
    message: 'want `metrics` with the provider HPA, and only there',
    messageExpression: `${PROVIDER} == 'HPA' ? 'got none, want metrics: the provider is HPA' : 'got metrics with the provider Native, want the provider HPA'`,
    field: 'metrics',
  },
  {
    rule: `${PROVIDER} == 'HPA' || !has(self.behavior) || (${onlyWindow('scaleUp')} && ${onlyWindow('scaleDown')})`,
    message: 'the provider Native takes stabilizationWindowSeconds only',
    field: 'behavior',
  },
)

export const ModelScaling = Scaled.meta({ default: {} }).describe(
  'How the number of replicas is decided, and its bounds.',
)
/** As a Model's; without default, as most Ensembles have no pods. */
export const EnsembleScaling = Scaled.describe(
  'How the number of replicas of its pods is decided, and its bounds.',
)
export type ModelScaling = z.infer<typeof ModelScaling>
