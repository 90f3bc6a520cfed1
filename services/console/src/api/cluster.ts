import { z } from 'zod'

/** A Model or an Ensemble of the cluster that is not Ready, and why, as the operator says it. */
export const UnreadyResource = z.object({
  kind: z.enum(['Model', 'Ensemble']),
  /** In the cluster. */
  name: z.string(),
  /** What clients call it. */
  model: z.string(),
  /** `refused`: its newest generation was not accepted; an earlier one may be served. `degraded`: it answers, and something is wrong. */
  state: z.enum(['refused', 'not ready', 'degraded']),
  /** Of the condition that says it. The message of a refusal begins with the field. */
  reason: z.string(),
  message: z.string(),
  /** Address of the page that explains the reason. */
  help: z.string(),
})
export type UnreadyResource = Readonly<z.infer<typeof UnreadyResource>>

/** Of a router on Kubernetes. */
export const Cluster = z.object({
  namespace: z.string(),
  unready: z.array(UnreadyResource).readonly(),
  /** Further ones, which are too many for a page. */
  leftOut: z.number(),
  /** Why they are not known; '' if they are. */
  failure: z.string(),
})
export type Cluster = Readonly<z.infer<typeof Cluster>>
