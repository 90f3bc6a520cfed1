import { z } from 'zod'
import { ClusterState } from './cluster.ts'
import { Counts } from './counts.ts'
import { Kind, Version } from './overview.ts'
import { Replicas } from './replica.ts'

/** An input or output. `shape` has a leading -1 if the model batches. */
export const Tensor = z.object({
  name: z.string(),
  datatype: z.string(),
  shape: z.array(z.number()).readonly(),
  isOptional: z.boolean(),
})
export type Tensor = Readonly<z.infer<typeof Tensor>>

const Port = z.object({ name: z.string(), tensor: z.string() })

export const StepDetail = z.object({
  name: z.string(),
  model: z.string(),
  /** -1 is the latest. */
  version: z.number(),
  state: z.enum(['ready', 'not ready', 'unknown', 'built-in']),
  /** Model input -> ensemble tensor. */
  inputs: z.array(Port).readonly(),
  outputs: z.array(Port).readonly(),
  /** Conditions, constants, repetitions and rules of the step, in words. */
  call: z.array(z.string()).readonly(),
  /** Totals of the step within this ensemble; times are sums, in milliseconds. */
  totals: z
    .object({
      requests: z.number(),
      queueMs: z.number(),
      transferMs: z.number(),
      computeMs: z.number(),
    })
    .optional(),
  /** Failures of the step's model for all callers; absent if the caller may not see the model, or without counts. */
  failures: z.number().optional(),
})
export type StepDetail = Readonly<z.infer<typeof StepDetail>>

export const Graph = z.object({
  steps: z.array(StepDetail).readonly(),
  /** All tensors between the steps, with those of the ensemble's signature. */
  tensors: z.array(Tensor).readonly(),
})
export type Graph = Readonly<z.infer<typeof Graph>>

/** The answer of `GET /console/api/models/NAME`. */
export const ModelDetail = z.object({
  name: z.string(),
  kind: Kind,
  platform: z.string(),
  versions: z.array(Version).readonly(),
  maxBatchSize: z.number(),
  isDecoupled: z.boolean(),
  inputs: z.array(Tensor).readonly(),
  outputs: z.array(Tensor).readonly(),
  /** The graph of an ensemble. */
  graph: Graph.optional(),
  /** Replicas of the model, or of the models of an ensemble's steps; absent if the caller may not see them. */
  replicas: Replicas.optional(),
  /** Resources of this model in the cluster that are not Ready; absent without a cluster, or if the caller may not see them. */
  cluster: ClusterState.optional(),
  /** Ensembles that call the model. */
  usedBy: z.array(z.string()).readonly(),
  /** True if the page may send requests to the model. */
  mayInfer: z.boolean(),
  /** True if the page may show single requests of other clients. */
  mayCatch: z.boolean(),
  /** The HTTP API for other clients; port 0 if the flags ask for any free port. Absent if the API is not served. */
  http: z.object({ port: z.number(), isSecure: z.boolean() }).optional(),
  atMs: z.number(),
  /** Time until the page should ask again, in milliseconds; longer on a server with many models. */
  nextMs: z.number().positive(),
  /** Error that kept the counts from being read; '' if there was none. */
  countsFailure: z.string(),
  counts: Counts.optional(),
})
export type ModelDetail = Readonly<z.infer<typeof ModelDetail>>
