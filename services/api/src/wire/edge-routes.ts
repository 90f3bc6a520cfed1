import { z } from 'zod'
import { parseWire } from './wire-field.ts'

/*
 * The rules of what a router lets come from outside: the Secret that the operator writes, or a person's file.
 */

const HOST = /^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

const EdgeIdentity = z
  .strictObject({
    name: z.string().min(1).max(63),
    tokenSha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/, { error: 'want 64 hex digits in lower case' })
      .optional(),
    /** Whose tokens are taken, if they are for this audience. */
    serviceAccount: z
      .strictObject({
        namespace: z.string().min(1).max(63),
        name: z.string().min(1).max(253),
        audience: z.string().min(1).max(253),
      })
      .optional(),
    /** For each router. */
    quota: z
      .strictObject({
        requestsPerSecond: z.int().min(1).optional(),
        burst: z.int().min(1).optional(),
        concurrentRequests: z.int().min(1).optional(),
      })
      .optional(),
  })
  .refine((one) => (one.tokenSha256 === undefined) !== (one.serviceAccount === undefined), {
    error: 'want one of tokenSha256 and serviceAccount',
  })
export type EdgeIdentity = z.infer<typeof EdgeIdentity>

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
        /** Chosen by who wrote the route, another for each state of it. The router repeats it to the operator once the route counts. */
        revision: z.string().min(1).max(64).optional(),
        /** Who is let in. Absent: everybody. */
        identities: z.array(EdgeIdentity).max(1000).optional(),
      }),
    )
    .max(10_000),
  /** Who issues ServiceAccount tokens, and the JSON Web Keys that verify them. */
  issuer: z
    .strictObject({
      url: z.string().min(1),
      keys: z.array(z.record(z.string(), z.unknown())).max(100),
    })
    .optional(),
})
export type EdgeRoutes = z.infer<typeof EdgeRoutes>

/** @throws ServeError MALFORMED_MESSAGE that names the field. */
export function parseEdgeRoutes(json: unknown): EdgeRoutes {
  return parseWire('edge routes', EdgeRoutes, json)
}
