import { ServeError } from '@tutti/errors'
import { type Json, type ModelConfig, parseJsonConfig, toJsonConfig } from '@tutti/model-config'
import { z } from 'zod'

/** A ModelConfig, which travels as protobuf JSON. Errors name the field within the configuration. */
export const ConfigJson = z.codec(z.custom<Json>(), z.custom<ModelConfig>(), {
  decode: (json, { issues }) => readConfigJson(json, issues, []),
  encode: toJsonConfig,
})

/**
 * Parses a ModelConfig from protobuf JSON. A fault does not throw: it is added to `issues`.
 *
 * @param at - the path of `json`, for the path of an issue.
 * @returns `z.NEVER` after a fault.
 */
export function readConfigJson(
  json: Json,
  issues: z.core.$ZodRawIssue[],
  at: readonly PropertyKey[],
): ModelConfig {
  try {
    return parseJsonConfig(json)
  } catch (error) {
    const { message, details } = ServeError.from(error)
    const path = [...at, ...toPath(details.field ?? '')]
    issues.push({ code: 'custom', input: json, message, path })
    return z.NEVER
  }
}

/**
 * An integer of at least 0. A fault ends the parse, as it must for everything that others send: without `abort` zod goes on to
 * the next field.
 */
export const Natural = z.int({ abort: true }).min(0, { abort: true })

/** Collecting every issue takes 2 microseconds and 600 bytes for each, which fills the process if a stranger sends millions. */
const FIRST_ISSUE: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true }

/**
 * Parses JSON that another process sent, and stops at the first fault.
 *
 * @param what - the name of the message, for the text of the error.
 * @throws ServeError MALFORMED_MESSAGE with the first field that does not fit, as a path.
 */
export function parseWire<T>(what: string, schema: z.ZodType<T>, json: unknown): T {
  const { success, data, error } = schema.safeParse(json, FIRST_ISSUE)
  if (success) return data
  const [issue] = error.issues
  const field = issue === undefined ? '' : z.core.toDotPath(issue.path)
  const text = `${field === '' ? what : `${what}: ${field}`}: ${issue?.message ?? 'it does not fit'}`
  throw new ServeError('MALFORMED_MESSAGE', text, { details: { field }, cause: error })
}

/** Splits a field such as `input[0].dims` into the parts that zod joins again. */
function toPath(field: string): (string | number)[] {
  return (field.match(/[^.[\]]+/g) ?? []).map((part) => (/^\d+$/.test(part) ? Number(part) : part))
}
