import { z } from 'zod'

/** A Model or an Ensemble of the cluster that is not Ready, with the reason that the operator gives. */
export const UnreadyResource = z.object({
  kind: z.enum(['Model', 'Ensemble']),
  /** Name of the resource in the cluster. */
  name: z.string(),
  /** Name by which clients call the model or ensemble. */
  model: z.string(),
  /**
   * `refused`: its newest generation was not accepted; an earlier one may be served. `degraded`: it answers, and something is
   * wrong.
   */
  state: z.enum(['refused', 'not ready', 'degraded']),
  /** Reason of the condition. The message of a refusal begins with the field that is wrong. */
  reason: z.string(),
  message: z.string(),
  /** Address of the page that explains the reason. */
  help: z.string(),
})
export type UnreadyResource = Readonly<z.infer<typeof UnreadyResource>>

/** The cluster of a router on Kubernetes: its resources that are not Ready. */
export const ClusterState = z.object({
  namespace: z.string(),
  unready: z.array(UnreadyResource).readonly(),
  /** Number of further resources, which are left out. */
  leftOut: z.number(),
  /** Error that kept the resources from being read; '' if there was none. */
  failure: z.string(),
})
export type ClusterState = Readonly<z.infer<typeof ClusterState>>
