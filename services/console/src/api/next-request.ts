import { z } from 'zod'
import { RecordedSteps } from './step-span.ts'

/** The query with which a page asks `GET /console/api/models/NAME/next`. Without `want` it waits no more. */
export const NextQuery = z.object({
  /** The page's own name. */
  page: z.string().min(1).max(64),
  /** Counts the requests that it has waited for. */
  turn: z.string().max(16),
  want: z.enum(['any', 'failed', 'slow', 'id']).optional(),
  /** For `slow`. */
  slowerThanMs: z.coerce.number().min(0).optional(),
  /** For `id`. */
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

/** The answer: the request, once one has ended that fits. */
export const NextRequest = z.object({
  atMs: z.number(),
  nextMs: z.number().positive(),
  /** Requests of the model that have ended since the page waits. */
  seen: z.number(),
  caught: CaughtRequest.optional(),
})
export type NextRequest = Readonly<z.infer<typeof NextRequest>>
