import { z } from 'zod'

/** A Model or an Ensemble of the cluster that is not Ready, and why, as the operator says it. */
export const UnreadyResource = z.object({
  kind: z.enum(['Model', 'Ensemble']),
  /** In the cluster. */
  name: z.string(),
  /** The name by which clients call it. */
  model: z.string(),
  /** `refused`: its newest generation was not accepted; an earlier one may be served. `degraded`: it answers, and something is wrong. */
  state: z.enum(['refused', 'not ready', 'degraded']),
  /** Reason of the condition that says it. The message of a refusal begins with the field. */
  reason: z.string(),
  message: z.string(),
  /** Address of the page that explains the reason. */
  help: z.string(),
})
export type UnreadyResource = Readonly<z.infer<typeof UnreadyResource>>

/** The cluster of a router on Kubernetes: its resources that are not Ready. */
export const Cluster = z.object({
  namespace: z.string(),
  unready: z.array(UnreadyResource).readonly(),
  /** Further ones, which are too many for a page. */
  leftOut: z.number(),
  /** Why they are not known; '' if they are. */
  failure: z.string(),
})
export type Cluster = Readonly<z.infer<typeof Cluster>>
