import { z } from 'zod'
import { cel, celPattern, listAtomic, listMap, oneOf, text, told } from '../schema/cel.ts'
import {
  annotations,
  countOrShare,
  dnsLabel,
  labels,
  objectName,
  quantities,
  whole,
} from '../schema/fields.ts'

/*
 * The fields of a Model about its pods.
 */

export const ModelResources = z
  .strictObject({
    requests: quantities('Amounts that are reserved for a pod.').optional(),
    limits: quantities('Largest amounts that a pod may use.').optional(),
  })
  .describe('Resources of the container that serves, as in a pod. Keys are [PREFIX/]NAME.')
export type ModelResources = z.infer<typeof ModelResources>

/** A toleration, with the fields that it has in a pod. */
export const Toleration = z.strictObject({
  key: text({ max: 317 }).optional().describe('Key of the taint. Default: any.'),
  operator: z
    .enum(['Exists', 'Equal'])
    .optional()
    .describe('Whether the value of the taint counts. Default Equal.'),
  value: text({ max: 63 }).optional().describe('Value of the taint, with Equal.'),
  effect: z
    .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
    .optional()
    .describe('Effect of the taint. Default: any.'),
  tolerationSeconds: whole(
    0,
    2_147_483_647,
    'How long a pod stays when the taint comes, with NoExecute. Default: for ever.',
  ).optional(),
})

/** The extended resource of a device if `accelerator.resourceName` is absent. */
export const DEFAULT_DEVICE = 'nvidia.com/gpu'

const DeviceClaim = oneOf(
  z.strictObject({
    name: dnsLabel('Name of the claim within the pod.'),
    resourceClaimName: objectName(
      'A ResourceClaim of the namespace, which all pods share.',
    ).optional(),
    resourceClaimTemplateName: objectName(
      'A ResourceClaimTemplate of the namespace: each pod has a claim of its own.',
    ).optional(),
  }),
  'resourceClaimName',
  'resourceClaimTemplateName',
)

export const Accelerator = cel(
  z.strictObject({
    resourceName: text({
      min: 1,
      max: 317,
      pattern:
        /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/,
      want: 'DOMAIN/NAME, e.g. nvidia.com/gpu',
    })
      .optional()
      .describe(`The extended resource of a device. Default ${DEFAULT_DEVICE}.`),
    count: whole(1, 64, 'Devices of a pod. Default 1.').optional(),
    claims: listMap(DeviceClaim, 'name', { min: 1, max: 8 })
      .optional()
      .describe(
        'Claims of CUDA devices, in place of resourceName and count: dynamic resource allocation (resource.k8s.io/v1, Kubernetes 1.34 or newer).',
      ),
    runtimeClassName: objectName('The runtime class of the pods.').optional(),
    nodeSelector: labels('Labels that a node needs.').optional(),
    tolerations: listAtomic(Toleration, { max: 16 })
      .optional()
      .describe('Taints that the pods tolerate.'),
  }),
  {
    rule: '!has(self.claims) || !(has(self.resourceName) || has(self.count))',
    message:
      'got claims beside resourceName or count, want one of them: with claims a pod asks for no other device',
    field: 'claims',
  },
).describe('Devices that a pod gets, and the nodes that have them.')
export type Accelerator = z.infer<typeof Accelerator>

const celIsNone = (field: string): string =>
  `(type(self.${field}) == int ? self.${field} == 0 : self.${field} == '0%')`

export const ModelRollout = cel(
  z.strictObject({
    maxSurge: countOrShare('Pods above the desired number during a rollout. Default 1.').optional(),
    maxUnavailable: countOrShare(
      'Pods below the desired number during a rollout. Default 0.',
    ).optional(),
    whenFull: z
      .enum(['Wait', 'Replace'])
      .optional()
      .describe(
        'Order of a rollout in which a new pod finds no free device. Wait (default): old pods keep theirs until one is free. Replace: an old pod is taken away first, so that fewer pods answer meanwhile, with one replica none.',
      ),
  }),
  {
    rule: `!has(self.maxSurge) || !${celIsNone('maxSurge')} || (has(self.maxUnavailable) && !${celIsNone('maxUnavailable')})`,
    message: 'with maxSurge 0 no pod can be replaced, want maxUnavailable above 0',
    field: 'maxUnavailable',
  },
).describe('How pods are replaced, as in a Deployment.')
export type ModelRollout = z.infer<typeof ModelRollout>

export const DisruptionBudget = oneOf(
  z.strictObject({
    minAvailable: countOrShare('Pods that a node drain leaves.').optional(),
    maxUnavailable: countOrShare('Pods that a node drain may take at once.').optional(),
  }),
  'minAvailable',
  'maxUnavailable',
).describe(
  'Pods that a node drain may evict. Default: maxUnavailable 1 if there may be more than one replica.',
)
export type DisruptionBudget = z.infer<typeof DisruptionBudget>

/** Keys that belong to the operator. */
const OWN_LABEL = /^(app\.kubernetes\.io|([a-z0-9.-]+\.)?tutti\.dev)\//

const podLabels = cel(labels('Further labels of the pods.'), {
  rule: `self.all(key, !key.matches(${celPattern(OWN_LABEL)}))`,
  message: 'app.kubernetes.io/ and tutti.dev/ belong to the operator, want other prefixes',
})

const PodSpecFields = z
  .record(z.string(), z.unknown())
  .meta({ 'x-kubernetes-preserve-unknown-fields': true })

/** `kubectl apply` takes a null for a field to remove, and drops it: what then reaches the cluster depends on what is there. */
const podSpec = told<typeof PodSpecFields>(PodSpecFields, {
  text: (value) =>
    `got null at ${findNull(value)}, which kubectl apply drops; want $patch: delete or $patch: replace in an object to remove what is there`,
  holds: (value) => findNull(value) === undefined,
}).describe(
  'Fields of a pod spec, merged into those of the operator: containers, volumes and other lists by name; the container that serves is called main. `$patch: delete` removes an object or an element of these lists, `$patch: replace` removes all that the operator has set there.',
)

/** Finds the path of a null within a value of any depth; undefined if there is none. */
function findNull(value: unknown): string | undefined {
  const left: (readonly [path: string, value: unknown])[] = [['', value]]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [path, node] = next
    if (node === null) return path
    if (typeof node !== 'object') continue
    const isList = Array.isArray(node)
    for (const [key, child] of Object.entries(node)) {
      const dot = path === '' ? key : `${path}.${key}`
      left.push([isList ? `${path}[${key}]` : dot, child])
    }
  }
  return undefined
}

export const PodTemplate = z
  .strictObject({
    metadata: z
      .strictObject({
        labels: podLabels.optional(),
        annotations: annotations('Further annotations of the pods.').optional(),
      })
      .optional()
      .describe('Further metadata of the pods.'),
    spec: podSpec.optional(),
  })
  .describe('Additions to the pods that the operator creates.')
export type PodTemplate = z.infer<typeof PodTemplate>

/** The fields that count for the pods of a host, be it a Model, or an Ensemble with `placement: Together`. */
export const POD_FIELDS = [
  'resources',
  'accelerator',
  'scaling',
  'rollout',
  'disruptionBudget',
  'podTemplate',
] as const

type WithDevices = z.ZodType<
  Readonly<{ resources?: ModelResources | undefined; accelerator?: Accelerator | undefined }>
>

/**
 * Adds the rule that resources name no devices: a process that is not told of its devices leaves them idle, and a second number of them
 * would be ignored.
 */
export function withoutDevices<T extends WithDevices>(schema: T): T {
  return told<T>(schema, {
    text: () => 'got devices of the pod here, want them in `accelerator` alone',
    field: 'resources',
    holds: ({ resources: { limits = {}, requests = {} } = {}, accelerator }) => {
      const device = accelerator?.resourceName ?? DEFAULT_DEVICE
      return !Object.hasOwn(limits, device) && !Object.hasOwn(requests, device)
    },
  })
}
