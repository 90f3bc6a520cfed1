import { z } from 'zod'
import { RecordedSteps } from './step-span.ts'

/** The query of `GET /console/api/models/NAME/next`, with which a page waits for a request. Without `want` it stops waiting. */
export const NextQuery = z.object({
  /** Name of the page, which the page chooses. */
  page: z.string().min(1).max(64),
  /** Number of this wait among the waits of the page. */
  turn: z.string().max(16),
  want: z.enum(['any', 'failed', 'slow', 'id']).optional(),
  /** Least time of a request that is wanted, for `slow`. */
  slowerThanMs: z.coerce.number().min(0).optional(),
  /** Request id or trace id of the request that is wanted, for `id`. */
  id: z.string().min(1).max(4096).optional(),
})
export type NextQuery = Readonly<z.infer<typeof NextQuery>>

export const CaughtRequest = RecordedSteps.extend({
  id: z.string(),
  traceId: z.string(),
  version: z.number(),
  startedAt: z.number(),
  elapsedMs: z.number(),
  reason: z.string(),
})
export type CaughtRequest = Readonly<z.infer<typeof CaughtRequest>>

/** The answer of `GET /console/api/models/NAME/next`: the request that the page waits for, once it has ended. */
export const NextRequest = z.object({
  atMs: z.number(),
  nextMs: z.number().positive(),
  /** Requests of the model that have ended since the page waits. */
  seen: z.number(),
  caught: CaughtRequest.optional(),
})
export type NextRequest = Readonly<z.infer<typeof NextRequest>>
