import { z } from 'zod'
import { ModelResources, PodTemplate, Toleration } from '../model/model-pods.ts'
import { ModelScaling } from '../model/model-scaling.ts'
import { cel, celPattern, listAtomic, listSet, text } from '../schema/cel.ts'
import { bytes, DURATION, duration, labels, whole } from '../schema/fields.ts'
import { RouterScaling } from './router-scaling.ts'

/*
 * The router of a namespace. Every field is optional: an empty spec is a router with the operator's defaults.
 */

const LEAST_DRAIN = '1s'
const MOST_DRAIN = '24h'
const WANTED_DRAIN = `want ${LEAST_DRAIN} to ${MOST_DRAIN}`

const Drain = cel(
  duration('Time for requests in flight when a pod ends, 1s to 24h. Default 30s.'),
  {
    // A text that is no duration breaks the rule before, which says so.
    rule: `!self.matches(${celPattern(DURATION)}) || (duration(self) >= duration('${LEAST_DRAIN}') && duration(self) <= duration('${MOST_DRAIN}'))`,
    message: WANTED_DRAIN,
    messageExpression: `'got ' + self + ', ${WANTED_DRAIN}'`,
  },
)

const ClientNamespace = text({
  min: 1,
  max: 63,
  pattern: /^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$/,
  want: 'the name of a namespace, or *',
})

const ClientNamespaces = cel(listSet(ClientNamespace, { max: 64 }), {
  rule: "!self.exists(name, name == '*') || self.size() == 1",
  message: 'want * alone, or names of namespaces',
}).describe(
  'Namespaces whose pods may call the router beside those of its own; * for all. Default none.',
)

/** The modes of the console, a web page of each router pod. `None` means no page. */
export const ROUTER_CONSOLES = ['None', 'Show', 'Infer'] as const
export type RouterConsole = (typeof ROUTER_CONSOLES)[number]

/** The fields about where pods run, of the router and of built-ins. */
const PLACEMENT = {
  nodeSelector: labels('Labels that a node needs. Default none.').optional(),
  tolerations: listAtomic(Toleration, { max: 16 })
    .optional()
    .describe('Taints that the pods tolerate. Default none.'),
  podTemplate: PodTemplate.optional().describe(
    'Additions to the pods that the operator creates. Containers only where the operator allows images (--allow-router-image).',
  ),
}

const BuiltinsScaling = cel(ModelScaling, {
  rule: '!has(self.minReplicas) || self.minReplicas > 0',
  message:
    'got 0, want at least 1: these pods are small, and there are none while no Ensemble needs them',
  field: 'minReplicas',
})

const Builtins = z
  .strictObject({
    scaling: BuiltinsScaling.optional().describe(
      'How the number of pods is decided, and its bounds, as in a Model. Default: one pod.',
    ),
    resources: ModelResources.optional().describe(
      'Resources of a pod. Default: requests of 100m CPU and 256Mi, a limit of 2Gi of memory.',
    ),
    ...PLACEMENT,
  })
  .describe(
    'Pods of the built-in steps of Ensembles that name no Model beside which they run. They are there as long as an Ensemble needs them.',
  )

/** The fields of a Router; the operator's flags give the defaults of `scaling` and `image`. */
export const RouterSpec = z
  .strictObject({
    scaling: RouterScaling.optional().describe(
      'How the number of pods is decided, and its bounds. Default: --router-replicas of the operator.',
    ),
    image: text({ min: 1, max: 1024, pattern: /^\S+$/, want: 'an image reference' })
      .optional()
      .describe(
        'Image of the router, only where the operator allows it (--allow-router-image). Default: --router-image of the operator.',
      ),
    resources: ModelResources.optional().describe(
      'Resources of a pod. Default: requests of 250m CPU and 512Mi, a limit of 2Gi of memory.',
    ),
    ...PLACEMENT,
    maxInFlightRequests: whole(
      1,
      10_000_000,
      'Requests that a pod works on at the same time; it refuses further ones. Default 4096.',
    ).optional(),
    maxInFlightBytes: bytes(
      'Bytes of these requests, e.g. 2Gi. Default 1Gi; keep it below the memory limit.',
    ).optional(),
    timeouts: z
      .strictObject({ drain: Drain.optional() })
      .optional()
      .describe('Time limits of the pods.'),
    logVerbose: whole(0, 10, 'Above 0 the router writes debug lines. Default 0.').optional(),
    clientNamespaces: ClientNamespaces.optional(),
    stepTransport: z
      .enum(['NATS', 'TLS', 'TCP'])
      .optional()
      .describe(
        'What requests and tensors travel over between the router and steps: NATS, or connections from its pods to those of the Models, encrypted (TLS) or not (TCP, for a network that encrypts itself). Another value replaces these pods. Default NATS.',
      ),
    console: z
      .enum(ROUTER_CONSOLES)
      .optional()
      .describe(
        'The console, a web page on port 8003 of the loopback of each pod, which kubectl port-forward reaches: None, Show, or Infer to send requests from it too. Another value replaces the pods of the router. Default: --router-console of the operator.',
      ),
    builtins: Builtins.optional(),
  })
  .describe("Settings of the namespace's router. Absent fields have their defaults.")
export type RouterSpec = z.infer<typeof RouterSpec>
