import { z } from 'zod'
import { parseWire } from './wire-field.ts'

/*
 * Routers and the operator tell each other about Models that have no pods while no request comes (`minReplicas: 0`): the operator by
 * an annotation of the accepted revision, the router by its answer to `GET /tutti/v1/wanted`.
 */

/** Annotation of the newest accepted revision of a Model that may have no pods. Its text is a `SleepMark`. */
export const SLEEP_ANNOTATION = 'tutti.dev/sleep'

/** The terms under which routers hold requests for a Model that has no pod which serves. */
export const SleepMark = z.object({
  /** Longest time for which a request waits, in milliseconds. */
  loadMs: z.int().min(1),
  /** Progress of the start of a pod, for the error of a request that waited in vain; absent while none is wanted. */
  start: z.string().max(1024).exactOptional(),
})
export type SleepMark = z.infer<typeof SleepMark>

/**
 * Parses the text of the annotation.
 *
 * @throws ServeError MALFORMED_MESSAGE that names the field.
 */
export function parseSleepMark(text: string): SleepMark {
  return parseWire(`annotation ${SLEEP_ANNOTATION}`, SleepJson, text)
}

const SleepJson = z
  .string()
  .transform((text, { issues }) => {
    try {
      return JSON.parse(text)
    } catch {
      // JSON.parse quotes what it was given, which says no more than this.
      issues.push({ code: 'custom', input: text, message: 'it is no JSON' })
      return z.NEVER
    }
  })
  .pipe(SleepMark)

/** The models for which requests wait in a router: its answer to `GET /tutti/v1/wanted`. Plain JSON. */
export const WantedByRouter = z.object({
  /** Names this answer. A question with `?seen=` and this text is answered when the models change, or after some seconds. */
  seen: z.string().max(64),
  /** Served names of Models without pods for which requests wait, and of those that stand behind them in the graphs. */
  models: z.array(z.string()),
})
export type WantedByRouter = z.infer<typeof WantedByRouter>

/**
 * Parses a router's answer to `GET /tutti/v1/wanted`.
 *
 * @throws ServeError MALFORMED_MESSAGE that names the field.
 */
export function parseWantedByRouter(json: unknown): WantedByRouter {
  return parseWire('demand of a router', WantedByRouter, json)
}
