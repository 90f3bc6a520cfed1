import { z } from 'zod'
import { ClusterState } from './cluster.ts'
import { Counts } from './counts.ts'

export const Version = z.object({
  version: z.string(),
  state: z.string(),
  /** Reason why the version is not ready; '' if it is ready. */
  reason: z.string(),
})
export type Version = Readonly<z.infer<typeof Version>>

export const Kind = z.enum(['model', 'ensemble', 'unknown'])
export type Kind = z.infer<typeof Kind>

/** A model as the list shows it. */
export const OverviewModel = z.object({
  name: z.string(),
  kind: Kind,
  /** Backend or platform; '' if its configuration is not known. */
  platform: z.string(),
  versions: z.array(Version).readonly(),
  counts: Counts.optional(),
})
export type OverviewModel = Readonly<z.infer<typeof OverviewModel>>

/** The data that the page shows first; the answer of `GET /console/api/overview`. */
export const Overview = z.object({
  server: z.object({
    name: z.string(),
    version: z.string(),
    isReady: z.boolean(),
    /** The processes that this server sees: `one process`, or one router of several. */
    scope: z.string(),
    /** Machine or pod of the server; absent if the caller may not see it. */
    host: z.string().optional(),
    /** The other routers of the repository; absent if the caller may not see them. */
    others: z
      .array(z.object({ name: z.string(), host: z.string() }))
      .readonly()
      .optional(),
  }),
  /** Time of the server's monotonic clock, in milliseconds: rates are taken from two answers. */
  atMs: z.number(),
  /** Time until the page should ask again, in milliseconds; longer on a server with many models. */
  nextMs: z.number().positive(),
  /** Error that kept the counts from being read; '' if there was none. */
  countsFailure: z.string(),
  models: z.array(OverviewModel).readonly(),
  /** State of the cluster; absent without a cluster, or if the caller may not see it. */
  cluster: ClusterState.optional(),
})
export type Overview = Readonly<z.infer<typeof Overview>>
