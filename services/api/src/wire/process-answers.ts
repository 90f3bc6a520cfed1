import { z } from 'zod'
import { Natural, parseWire } from './wire-field.ts'

/*
 * The answers of routers and steps on their metrics port to the operator, as JSON. Members that only newer processes know are
 * dropped.
 */

/** The models that a router serves now: its answer to `GET /tutti/v1/served`. JSON as it stands. */
export const ServedByRouter = z.object({
  /** Models that a live replica serves, with the revisions that requests may use. */
  models: z.array(
    z.object({
      name: z.string(),
      versions: z.array(z.object({ version: Natural, revisions: z.array(z.string()) })),
    }),
  ),
  /**
   * Names of ControllerRevisions. A Model's is here while a live replica serves one of its revisions; an Ensemble's while
   * requests execute exactly its data and every model that it is composed of has a live replica.
   */
  accepted: z.array(z.string()),
  /** Revisions of the routes by which requests from outside get in; absent without listeners for them. */
  exposed: z.array(z.string()).optional(),
})
export type ServedByRouter = z.infer<typeof ServedByRouter>

/** How loaded a step is: its answer to `GET /tutti/v1/load`. JSON as it stands. */
export const StepLoad = z.object({
  models: z.array(
    z.object({
      name: z.string(),
      /** Requests that execute. */
      inFlight: Natural,
      /** Requests that wait. */
      queued: Natural,
      /** Requests that can execute at the same time. */
      slots: Natural,
    }),
  ),
})
export type StepLoad = z.infer<typeof StepLoad>

/** @throws ServeError MALFORMED_MESSAGE that names the field. */
export function parseServedByRouter(json: unknown): ServedByRouter {
  return parseWire('answer of a router', ServedByRouter, json)
}

/** @throws ServeError MALFORMED_MESSAGE that names the field. */
export function parseStepLoad(json: unknown): StepLoad {
  return parseWire('load of a step', StepLoad, json)
}
