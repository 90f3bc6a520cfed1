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
    /** ServiceAccount whose tokens are accepted, if they are for `audience`. */
    serviceAccount: z
      .strictObject({
        namespace: z.string().min(1).max(63),
        name: z.string().min(1).max(253),
        audience: z.string().min(1).max(253),
      })
      .optional(),
    /** Quota of the identity at each router. */
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

/**
 * The routes by which requests from outside get in. An unknown member is refused: it may be a condition, and without the
 * condition more would be exposed than was meant.
 */
export const EdgeRoutes = z.strictObject({
  routes: z
    .array(
      z.strictObject({
        /** Host names in lower case; `*.` at the beginning stands for one label or more. */
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
        /**
         * Revision of the route: its author chooses another one for each change. The router reports it to the operator once the
         * route counts.
         */
        revision: z.string().min(1).max(64).optional(),
        /** Identities that are let in; absent for everybody. */
        identities: z.array(EdgeIdentity).max(1000).optional(),
      }),
    )
    .max(10_000),
  /** Issuer of ServiceAccount tokens, with the JSON Web Keys that verify them. */
  issuer: z
    .strictObject({
      url: z.string().min(1),
      keys: z.array(z.record(z.string(), z.unknown())).max(100),
    })
    .optional(),
})
export type EdgeRoutes = z.infer<typeof EdgeRoutes>

/**
 * Parses the routes by which requests from outside get in.
 *
 * @throws ServeError MALFORMED_MESSAGE that names the field.
 */
export function parseEdgeRoutes(json: unknown): EdgeRoutes {
  return parseWire('edge routes', EdgeRoutes, json)
}
