import { z } from 'zod'

/** Why something is not as it should be. */
const Cause = z.object({
  reason: z.string().meta({ description: 'One CamelCase word.' }),
  message: z.string(),
})
export type Cause = z.infer<typeof Cause>

const NodeState = z.enum(['Ready', 'Degraded', 'NotReady', 'Missing', 'Unknown']).meta({
  description:
    'Ready: requests are answered. Degraded: requests are answered, and something is wrong. NotReady: requests are not answered; of a pod: it takes none. Missing: a step names it, and there is none. Unknown: the user may not read it.',
})
export type NodeState = z.infer<typeof NodeState>

/** A resource or a pod, with the nodes below it: steps of an Ensemble, pods of a Model or Router. */
export const StatusNode = z.object({
  kind: z.enum(['Ensemble', 'Model', 'Built-in', 'Router', 'Pod']),
  name: z.string(),
  step: z.string().exactOptional().meta({
    description: 'Of the Ensemble above, which runs this.',
  }),
  state: NodeState,
  detail: z
    .string()
    .exactOptional()
    .meta({ description: 'What there is of it, such as 1/2 pods.' }),
  cause: Cause.exactOptional().meta({ description: 'Why it is not Ready; absent if it is.' }),
  get children() {
    return z.array(StatusNode).readonly()
  },
})
export type StatusNode = z.infer<typeof StatusNode>
// Its name in the schema; with .meta() the type would refer to itself.
z.globalRegistry.add(StatusNode, { id: 'StatusNode' })

/** Tells whether a node, or a resource below it, is not Ready. Pods below it do not count. */
export function isBroken({ state, children }: StatusNode): boolean {
  return state !== 'Ready' || children.some((child) => child.kind !== 'Pod' && isBroken(child))
}
