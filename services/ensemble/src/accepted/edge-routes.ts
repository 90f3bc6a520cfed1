import { z } from 'zod'
import { parseWire } from '../wire-field.ts'

/*
 * What a router lets come from outside: the file that the operator writes, or a person.
 */

const HOST = /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** Strict: a member that this router does not know may be a condition, and what is exposed must not become more by that. */
export const EdgeRoutes = z.strictObject({
  routes: z
    .array(
      z.strictObject({
        /** Lower case; `*.` at the beginning stands for one label or more. */
        hosts: z
          .array(
            z
              .string()
              .max(253)
              .regex(HOST, { error: 'want a host name in lower case, the first label may be *' }),
          )
          .min(1)
          .max(64),
        /** Served names. */
        models: z.array(z.string().min(1).max(253)).min(1).max(1024),
        /** Of the bearer token that requests must bring; absent: none is wanted. */
        tokenSha256: z
          .string()
          .regex(/^[0-9a-f]{64}$/, { error: 'want 64 hex digits in lower case' })
          .optional(),
      }),
    )
    .max(10_000),
})
export type EdgeRoutes = z.infer<typeof EdgeRoutes>

/** @throws ServeError MALFORMED_MESSAGE that names the field. */
export function parseEdgeRoutes(json: unknown): EdgeRoutes {
  return parseWire('edge routes', EdgeRoutes, json)
}
