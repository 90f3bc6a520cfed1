import { z } from 'zod'
import { EnsembleManifest, type Manifest, ModelManifest, RouterManifest } from './manifests.ts'
import {
  describeIssue,
  memberOf,
  type SchemaProblem,
  toSchemaProblems,
} from './schema/schema-problems.ts'

const SCHEMAS = { Model: ModelManifest, Ensemble: EnsembleManifest } as const

/**
 * Checks a resource against the schema of its kind, as the API server does. A null counts as absent in place of a known field
 * or of an entry of a map.
 *
 * @param value - JSON; copied.
 * @returns the parsed resource, or its problems.
 */
export function parseManifest(kind: Manifest['kind'], value: unknown) {
  const schema = SCHEMAS[kind]
  const { success, data, error } = schema.safeParse(withoutNulls(schema, value), {
    error: describeIssue,
  })
  return success ? { success, data } : { success, problems: toSchemaProblems(schema, error) }
}

/**
 * Checks a Router against its schema. A Router has no other rules.
 *
 * @returns the problems; empty for a valid Router.
 */
export function findRouterProblems(value: unknown): readonly SchemaProblem[] {
  const given = withoutNulls(RouterManifest, value)
  const { success, error } = RouterManifest.safeParse(given, { error: describeIssue })
  return success ? [] : toSchemaProblems(RouterManifest, error)
}

function withoutNulls(schema: z.core.$ZodType, value: unknown): unknown {
  if (Array.isArray(value)) {
    const element = schema instanceof z.ZodArray ? memberOf(schema, 0) : undefined
    return element ? value.map((item: unknown) => withoutNulls(element, item)) : value
  }
  if (typeof value !== 'object' || value === null || schema instanceof z.ZodArray) return value
  const entries = Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
    const child = memberOf(schema, key)
    if (child === undefined) return [[key, member]]
    return member === null ? [] : [[key, withoutNulls(child, member)]]
  })
  return Object.fromEntries(entries)
}
