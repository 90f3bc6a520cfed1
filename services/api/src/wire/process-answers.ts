import { z } from 'zod'
import { Natural, parseWire } from './wire-field.ts'

/*
 * The answers of routers and steps on their metrics port to the operator, as JSON. Members that only newer processes know are
 * dropped.
 */

/** The models that a router serves now: its answer to `GET /tutti/v1/served`. Plain JSON. */
export const ServedByRouter = z.object({
  /** Models that a live replica serves, with the revisions that requests may use. */
  models: z.array(
    z.object({
      name: z.string(),
      versions: z.array(z.object({ version: Natural, revisions: z.array(z.string()) })),
    }),
  ),
  /**
   * Names of the ControllerRevisions that are served. A Model's is listed while a live replica serves one of its revisions. An
   * Ensemble's is listed while requests execute exactly its data and every composing model has a live replica.
   */
  accepted: z.array(z.string()),
  /** Revisions of the routes by which requests from outside get in; absent if the router has no listeners for such requests. */
  exposed: z.array(z.string()).optional(),
})
export type ServedByRouter = z.infer<typeof ServedByRouter>

/** The load of a step: its answer to `GET /tutti/v1/load`. Plain JSON. */
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
      /** Requests since the start of the process; absent from a process of a release that does not count them. */
      requests: Natural.exactOptional(),
    }),
  ),
})
export type StepLoad = z.infer<typeof StepLoad>

/** Progress of a pod of steps before it serves: the answer of its fetch or of its step to `GET /tutti/v1/start`. Plain JSON. */
export const StartProgress = z.object({
  /** Bytes of the files that a fetch brings; absent before they come and when all have come. */
  transfer: z.object({ bytes: Natural, totalBytes: Natural.optional() }).optional(),
  /** Models that are not loaded yet, with what each load waits for, e.g. `version 1, warm-up sample "s"`. */
  loads: z.array(z.object({ model: z.string(), doing: z.string() })),
})
export type StartProgress = z.infer<typeof StartProgress>

/**
 * Parses the answer of a pod of steps to `GET /tutti/v1/start`.
 *
 * @throws ServeError MALFORMED_MESSAGE that names the field.
 */
export function parseStartProgress(json: unknown): StartProgress {
  return parseWire('start of a step', StartProgress, json)
}

/**
 * Parses a router's answer to `GET /tutti/v1/served`.
 *
 * @throws ServeError MALFORMED_MESSAGE that names the field.
 */
export function parseServedByRouter(json: unknown): ServedByRouter {
  return parseWire('answer of a router', ServedByRouter, json)
}

/**
 * Parses a step's answer to `GET /tutti/v1/load`.
 *
 * @throws ServeError MALFORMED_MESSAGE that names the field.
 */
export function parseStepLoad(json: unknown): StepLoad {
  return parseWire('load of a step', StepLoad, json)
}
