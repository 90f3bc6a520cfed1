import { describeIssue, toProblemText, toSchemaProblems } from '@tutti/api'
import type { z } from 'zod'

/** A parsed spec, or one line why it cannot be read: an older or newer schema may have accepted it. */
export type ReadSpec<S> =
  | { readonly spec: S; readonly problem?: undefined }
  | { readonly spec?: undefined; readonly problem: string }

export function parseSpec<S>(schema: z.ZodType<S>, json: unknown): ReadSpec<S> {
  const { success, data, error } = schema.safeParse(json, { error: describeIssue })
  return success ? { spec: data } : { problem: toProblemText(toSchemaProblems(schema, error)) }
}

/** Makes a function that calls `read` once for each object and remembers the result. Objects of a cache never change. */
export function once<K extends object, V>(read: (object: K) => V): (object: K) => V {
  const known = new WeakMap<K, { readonly value: V }>()
  return (object) => {
    const found = known.get(object) ?? { value: read(object) }
    known.set(object, found)
    return found.value
  }
}
