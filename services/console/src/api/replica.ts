import { z } from 'zod'

/** A replica as the page shows it; see `ConsoleReplica`. */
export const ShownReplica = z.object({
  replica: z.string(),
  host: z.string(),
  state: z.enum(['taking work', 'draining', 'suspect', 'other protocol']),
  reachedOver: z.string(),
  inFlight: z.number(),
  load: z.object({ inFlight: z.number(), queued: z.number() }).optional(),
  versions: z
    .array(
      z.object({
        model: z.string(),
        version: z.string(),
        revision: z.string(),
        state: z.string(),
        reason: z.string(),
      }),
    )
    .readonly(),
  /** Totals of this router's calls since the page was opened: one for each step of an ensemble; for a model one, with step ''. */
  totals: z
    .array(
      z.object({
        step: z.string(),
        requests: z.number(),
        failures: z.number(),
        queueMs: z.number(),
        transferMs: z.number(),
        computeMs: z.number(),
      }),
    )
    .readonly(),
})
export type ShownReplica = Readonly<z.infer<typeof ShownReplica>>

export const Replicas = z.object({
  all: z.array(ShownReplica).readonly(),
  /** Number of further replicas, which are left out. */
  leftOut: z.number(),
})
export type Replicas = Readonly<z.infer<typeof Replicas>>
