import { RouterSpec } from '@tutti/api'
import { SERVICE_ACCOUNT } from '@tutti/kube'
import type { PlainObject } from '@tutti/kube/testing'
import t from 'tap'
import { digestOf } from '../runtime/canonical.ts'
import { main } from '../testing/build-model.ts'
import { stepSettings } from '../testing/step-settings.ts'
import { buildBuiltinsChildren } from './build-builtins-children.ts'
import { BUILTINS_IDENTITY } from './step-labels.ts'
import type { StepPodSettings } from './step-settings.ts'

const SELECTOR = { 'app.kubernetes.io/component': 'step', 'tutti.dev/builtins': 'true' }

interface Given {
  readonly spec?: PlainObject
  readonly settings?: Partial<StepPodSettings>
  readonly replicas?: number | undefined
}

function build(given: Given = {}) {
  const { spec = {}, settings } = given
  const facts = {
    namespace: 'vision',
    spec: RouterSpec.parse(spec),
    settings: stepSettings(settings),
  }
  return buildBuiltinsChildren(facts, { replicas: 'replicas' in given ? given.replicas : 1 })
}

/** Copies an object as the API server gets it. */
function toPlainObject(object: object = {}): PlainObject {
  return JSON.parse(JSON.stringify(object))
}

function find(kind: string, given?: Given): PlainObject | undefined {
  const found = build(given).find(({ resource }) => resource.kind === kind)
  return found && toPlainObject(found.object)
}

const specOf = (kind: string, given?: Given): PlainObject => find(kind, given)?.['spec'] ?? {}
const kindsOf = (given?: Given) => build(given).map(({ resource }) => resource.kind)
const podOf = (given?: Given): PlainObject => specOf('Deployment', given)['template'].spec
const mainOf = (given?: Given): PlainObject => podOf(given)['containers'][0]

/**
 * Digest of the smallest pod. Another digest means that all such pods are replaced when the operator is upgraded: change it here
 * only if that is worth it.
 */
const TEMPLATE = 'e1f7a0d1dbfd5467fb1472499f09686c'

await t.test('the objects around the built-ins of a namespace', async (t) => {
  t.same(kindsOf(), ['ServiceAccount', 'NetworkPolicy', 'Deployment'])
  t.same(build().at(-1)?.needs, [SERVICE_ACCOUNT], 'without which no pod is made')
  for (const { resource, object } of build()) {
    const { name, labels } = object.metadata
    t.equal(name, 'tutti-builtins', resource.kind)
    t.match(labels, BUILTINS_IDENTITY, resource.kind)
  }
  const { template, ...rest } = find('Deployment')?.['spec'] ?? {}
  t.same(rest, {
    replicas: 1,
    selector: { matchLabels: SELECTOR },
    // No moment without a pod while they are replaced.
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    progressDeadlineSeconds: 660,
    revisionHistoryLimit: 3,
  })
  t.equal(template.metadata.annotations['tutti.dev/template'], TEMPLATE)
  t.match(template.metadata.labels, BUILTINS_IDENTITY)
})

await t.test("the pod has what a Model's has, but for the model", async (t) => {
  const pod = podOf()
  t.match(pod, {
    serviceAccountName: 'tutti-builtins',
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    terminationGracePeriodSeconds: 41,
    topologySpreadConstraints: [{ labelSelector: { matchLabels: SELECTOR } }],
  })
  t.notOk(pod['initContainers'])
  t.notOk(pod['readinessGates'], 'built-ins are accepted with the Ensembles that name them')
  const { args, volumeMounts, ...rest } = toPlainObject(main({ timeouts: { load: '1m' } }))
  t.same(mainOf(), {
    ...rest,
    args: ['--builtins', ...args.slice(4)],
    volumeMounts: volumeMounts.slice(1),
    resources: { requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '2Gi' } },
  })
})

await t.test('it has the scaling of a Model', async (t) => {
  const several = { builtins: { scaling: { minReplicas: 2 } } }
  t.same(find('PodDisruptionBudget', { spec: several })?.['spec'], {
    selector: { matchLabels: SELECTOR },
    maxUnavailable: 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
  })
  const target = { type: 'Utilization', averageUtilization: 80 }
  const metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }]
  const scaling = { provider: 'HPA', maxReplicas: 3, metrics }
  const hpa = { spec: { builtins: { scaling } }, replicas: undefined }
  t.same(find('HorizontalPodAutoscaler', hpa)?.['spec'], {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'tutti-builtins' },
    minReplicas: 1,
    maxReplicas: 3,
    metrics,
  })
  t.equal(specOf('Deployment', hpa)['replicas'], undefined)
  const deployment = build(hpa).find(({ resource }) => resource.kind === 'Deployment')
  t.equal(deployment?.handsOverReplicas, true)
})

await t.test('settings of the Router and the installation reach the pods', async (t) => {
  const changes: Readonly<Record<string, Given>> = {
    resources: { spec: { builtins: { resources: { limits: { memory: '4Gi' } } } } },
    nodeSelector: { spec: { builtins: { nodeSelector: { disk: 'fast' } } } },
    tolerations: { spec: { builtins: { tolerations: [{ key: 'a', operator: 'Exists' }] } } },
    podTemplate: { spec: { builtins: { podTemplate: { metadata: { labels: { team: 'a' } } } } } },
    podDefaults: { settings: { podDefaults: { podTemplate: { spec: { schedulerName: 'own' } } } } },
    drain: { spec: { timeouts: { drain: '90s' } } },
    transport: { spec: { stepTransport: 'TLS' } },
    image: { settings: { image: 'other:1' } },
    imagePullSecrets: { settings: { imagePullSecrets: ['registry'] } },
    hasAssignedUser: { settings: { hasAssignedUser: true } },
    metricsConfig: { settings: { metricsConfig: ['histogram_latencies=true'] } },
    telemetry: {
      settings: {
        telemetry: { endpoint: 'http://c:4318', sampleRatio: '1', headersSecret: undefined },
      },
    },
  }
  const before = digestOf(build())
  for (const [name, given] of Object.entries(changes)) t.not(digestOf(build(given)), before, name)
  const direct = mainOf({ spec: { stepTransport: 'TLS' } })
  t.match(direct['args'].join(' '), '--direct tls --direct-address [$(POD_IP)]:8003')
  const policy = JSON.stringify(find('NetworkPolicy', { spec: { stepTransport: 'TLS' } }))
  t.match(policy, '"port":8003', 'routers alone reach that port')
  t.notMatch(JSON.stringify(find('NetworkPolicy')), '8003')
  const network = { ...stepSettings().network, isEnabled: false }
  t.notOk(find('NetworkPolicy', { settings: { network } }))
})
