import { z } from 'zod'
import { Cluster } from './cluster.ts'
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

export const Step = z.object({
  name: z.string(),
  model: z.string(),
  /** -1 is the latest. */
  version: z.number(),
  state: z.enum(['ready', 'not ready', 'unknown']),
  /** Model input -> ensemble tensor. */
  inputs: z.array(Port).readonly(),
  outputs: z.array(Port).readonly(),
  /** Within this ensemble. Milliseconds, summed. */
  totals: z
    .object({
      requests: z.number(),
      queueMs: z.number(),
      transferMs: z.number(),
      computeMs: z.number(),
    })
    .optional(),
  /** Failures of its model over all its callers; absent if the caller may not see the model, or without counts. */
  failures: z.number().optional(),
})
export type Step = Readonly<z.infer<typeof Step>>

export const Graph = z.object({
  steps: z.array(Step).readonly(),
  /** All tensors between them, those of the signature included. */
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
  /** Where it runs, or the models of its steps; absent if the caller may not see that. */
  replicas: Replicas.optional(),
  /** Its resources there that are not ready. Absent where no cluster is, and if the caller may not see it. */
  cluster: Cluster.optional(),
  /** The ensembles that call it. */
  usedBy: z.array(z.string()).readonly(),
  /** Whether the page may send requests to it. */
  mayInfer: z.boolean(),
  /** Whether it may show single requests of others. */
  mayCatch: z.boolean(),
  /** The HTTP API, for other clients; port 0 if it is any free one. Absent if it is not served. */
  http: z.object({ port: z.number(), isSecure: z.boolean() }).optional(),
  atMs: z.number(),
  /** When the page should ask again, in milliseconds: an answer costs the server as much as it has models. */
  nextMs: z.number().positive(),
  /** Why there are no counts; '' if there are. */
  countsFailure: z.string(),
  counts: Counts.optional(),
})
export type ModelDetail = Readonly<z.infer<typeof ModelDetail>>
