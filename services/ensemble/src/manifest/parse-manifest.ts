import { z } from 'zod'
import { EnsembleManifest, type Manifest, ModelManifest } from './manifests.ts'
import { inOurWords, type SchemaProblem, toSchemaProblems } from './schema-problems.ts'

const SCHEMAS = { Model: ModelManifest, Ensemble: EnsembleManifest } as const

export type ParsedManifest =
  | { readonly success: true; readonly data: Manifest }
  | { readonly success: false; readonly problems: readonly SchemaProblem[] }

/**
 * Holds a resource against the schema of its kind, as the API server does: a null in place of a known field or of an entry
 * of a map is as if it were absent.
 *
 * @param value - JSON; copied.
 */
export function parseManifest(kind: Manifest['kind'], value: unknown): ParsedManifest {
  const schema = SCHEMAS[kind]
  const { success, data, error } = schema.safeParse(withoutNulls(schema, value), {
    error: inOurWords,
  })
  return success ? { success, data } : { success, problems: toSchemaProblems(schema, error) }
}

function withoutNulls(schema: z.core.$ZodType, value: unknown): unknown {
  if (schema instanceof z.ZodOptional) return withoutNulls(schema.def.innerType, value)
  if (Array.isArray(value)) {
    return schema instanceof z.ZodArray
      ? value.map((item: unknown) => withoutNulls(schema.element, item))
      : value
  }
  if (typeof value !== 'object' || value === null) return value
  const childOf = childrenOf(schema)
  const entries = Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
    const child = childOf(key)
    if (child === undefined) return [[key, member]]
    return member === null ? [] : [[key, withoutNulls(child, member)]]
  })
  return Object.fromEntries(entries)
}

/** The schema of a member; undefined for one that is not known, or may be anything. */
function childrenOf(schema: z.core.$ZodType): (key: string) => z.core.$ZodType | undefined {
  if (schema instanceof z.ZodObject) {
    const shape: Readonly<Record<string, z.core.$ZodType>> = schema.shape
    return (key) => (Object.hasOwn(shape, key) ? shape[key] : undefined)
  }
  if (!(schema instanceof z.ZodRecord)) return () => undefined
  const { valueType } = schema
  return () => (valueType instanceof z.ZodUnknown ? undefined : valueType)
}
