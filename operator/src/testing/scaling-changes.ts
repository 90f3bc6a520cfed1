import { change, changes, type FieldChange, type Reach } from './field-changes.ts'

const UTILIZATION = { type: 'Utilization', averageUtilization: 80 }
const AVERAGE = { type: 'AverageValue', averageValue: '10' }
const SELECTOR = { matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] }

/** By the member of a metric that holds it; each as the HPA takes it. */
const SOURCES = {
  resource: { type: 'Resource', source: { name: 'cpu', target: UTILIZATION } },
  containerResource: {
    type: 'ContainerResource',
    source: { name: 'cpu', container: 'main', target: UTILIZATION },
  },
  pods: { type: 'Pods', source: { metric: { name: 'queued' }, target: AVERAGE } },
  object: {
    type: 'Object',
    source: {
      describedObject: { apiVersion: 'v1', kind: 'Service', name: 'x' },
      metric: { name: 'queued' },
      target: AVERAGE,
    },
  },
  external: { type: 'External', source: { metric: { name: 'queued' }, target: AVERAGE } },
}
type Source = keyof typeof SOURCES

function withMetric(
  name: Source,
  o: { readonly target?: object; readonly selector?: object } = {},
) {
  const { type, source } = SOURCES[name]
  const { target = source.target, selector } = o
  const metric =
    'metric' in source ? { metric: { ...source.metric, ...(selector && { selector }) } } : {}
  const metrics = [{ type, [name]: { ...source, ...metric, target } }]
  return { scaling: { provider: 'HPA', maxReplicas: 3, metrics } }
}

/** The API server takes no such HPA, and the Model says so. */
function refused(says: RegExp): Reach {
  return { at: 'operator', condition: 'Degraded=True/Refused', says }
}

type Rows = Parameters<typeof changes>[1]

/** Builds the changes of the fields of a source, whose paths begin below it. */
function changesOf(name: Source, rows: Rows, o?: Parameters<typeof withMetric>[1]) {
  return changes(
    withMetric(name, o),
    rows.map(([path, from, to]) => [`scaling.metrics[].${name}.${path}`, from, to]),
  )
}

function metricChanges(name: 'pods' | 'object' | 'external'): readonly FieldChange[] {
  return [
    ...changesOf(name, [
      ['metric.name', 'queued', 'waiting'],
      ['metric.selector.matchLabels{a}', 'b', 'c'],
      ['target.averageValue', '10', '20'],
      ['metric.selector.matchLabels', { a: 'b' }, {}],
      ['metric.selector.matchExpressions', SELECTOR.matchExpressions, []],
    ]),
    ...changesOf(
      name,
      [
        ['metric.selector.matchExpressions[].key', 'a', 'c'],
        ['metric.selector.matchExpressions[].operator', 'In', 'NotIn'],
        ['metric.selector.matchExpressions[].values[]', 'b', 'c'],
        ['metric.selector.matchExpressions[].values', ['b'], []],
      ],
      { selector: SELECTOR },
    ),
    ...changesOf(name, [
      ['target.type', 'AverageValue', 'Value'],
      ['target.averageUtilization', undefined, 80],
    ]),
  ]
}

function resourceChanges(name: 'resource' | 'containerResource'): readonly FieldChange[] {
  return [
    ...changesOf(name, [
      ['name', 'cpu', 'memory'],
      ['target.averageUtilization', 80, 60],
      ['target.type', 'Utilization', 'AverageValue'],
      ['target.value', undefined, '10'],
    ]),
    ...changesOf(name, [['target.averageValue', '1', '2']], { target: { type: 'AverageValue' } }),
  ]
}

const METRICS: readonly FieldChange[] = [
  ...resourceChanges('resource'),
  ...resourceChanges('containerResource'),
  ...changesOf('containerResource', [['container', 'main', 'beside']]),
  ...metricChanges('pods'),
  ...metricChanges('object'),
  ...metricChanges('external'),
  ...changesOf('object', [
    ['describedObject.apiVersion', 'v1', 'example.com/v1'],
    ['describedObject.kind', 'Service', 'Pod'],
    ['describedObject.name', 'x', 'y'],
  ]),
  ...changesOf('pods', [['target.value', undefined, '10']]),
  ...changesOf('object', [['target.value', undefined, '10']]),
  change(
    refused(/target/),
    ['scaling.metrics[].external.target.value', undefined, '10'],
    withMetric('external'),
  ),
  change(
    { at: 'server', says: /spec\.scaling\.metrics\[0\].*got the type Pods/ },
    ['scaling.metrics[].type', 'Resource', 'Pods'],
    withMetric('resource'),
  ),
]

const BEHAVIOR: readonly FieldChange[] = ['scaleUp', 'scaleDown'].flatMap((way) => {
  const below = `scaling.behavior.${way}`
  const { scaling } = withMetric('resource')
  const policies = [{ type: 'Pods', value: 1, periodSeconds: 60 }]
  const behavior = { [way]: { policies } }
  return [
    ...changes({ scaling: { ...scaling, behavior } }, [
      [`${below}.stabilizationWindowSeconds`, 60, 120],
      [`${below}.selectPolicy`, undefined, 'Min'],
      [`${below}.policies[].type`, 'Pods', 'Percent'],
      [`${below}.policies[].value`, 1, 2],
      [`${below}.policies[].periodSeconds`, 60, 30],
    ]),
    change(refused(/policies/), [`${below}.policies`, policies, []], { scaling }),
    change(
      {
        at: 'operator',
        condition: 'Degraded=True/FieldLeftOut',
        says: new RegExp(`^spec\\.scaling\\.behavior\\.${way}\\.tolerance: `),
      },
      [`${below}.tolerance`, undefined, '50m'],
      { scaling: { ...scaling, behavior } },
    ),
    change({ at: 'scaling' }, [`${below}.stabilizationWindowSeconds`, 0, 600], {
      scaling: { maxReplicas: 3 },
    }),
  ]
})

/** The changes of the field walk for `scaling`: every field, each changed alone. */
export const SCALING_CHANGES: readonly FieldChange[] = [
  ...changes({}, [
    ['scaling.minReplicas', 1, 2],
    ['scaling.maxReplicas', undefined, 2],
  ]),
  change({ at: 'scaling' }, ['scaling.idleAfter', undefined, '1m'], {
    scaling: { minReplicas: 0 },
  }),
  change({ at: 'scaling' }, ['scaling.provider', undefined, 'None']),
  ...changes({ scaling: { provider: 'None' } }, [['scaling.replicas', 1, 2]]),
  change({ at: 'scaling' }, ['scaling.maxReplicas', 2, 3]),
  change({ at: 'scaling' }, ['scaling.target', undefined, 4], { scaling: { maxReplicas: 3 } }),
  ...METRICS,
  ...BEHAVIOR,
]
