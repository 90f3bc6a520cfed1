import { celPattern, isMirrored } from '@tutti/api'
import { assert } from '@tutti/errors'
import { z } from 'zod'

/** A node of a structural schema for a CustomResourceDefinition. */
export type StructuralSchema = Record<string, unknown>

/** Fields that JSONSchemaProps knows and we use; anything else would be refused as an unknown field. */
const KNOWN = new Set([
  'additionalProperties',
  'anyOf',
  'default',
  'description',
  'enum',
  'format',
  'items',
  'maxItems',
  'maxLength',
  'maxProperties',
  'maximum',
  'minItems',
  'minLength',
  'minimum',
  'pattern',
  'properties',
  'required',
  'type',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-map-type',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
])

const INT32_MAX = 2 ** 31 - 1

/**
 * Turns a zod schema into a structural schema.
 *
 * @throws ServeError INTERNAL with the path of a node that Kubernetes cannot check as zod does: an unknown keyword; a refinement
 * without a CEL rule; a list, map, text or number without bounds; a pattern that RE2 does not support.
 */
export function toStructuralSchema(schema: z.ZodType): StructuralSchema {
  const json: unknown = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    reused: 'inline',
    cycles: 'throw',
    unrepresentable: 'throw',
    override: ({ zodSchema, path }) => checkRefinements(zodSchema, path.join('.')),
  })
  return structural(json, '')
}

/** Refuses refinements, which JSON schema lacks: the API server would not know of them. */
function checkRefinements(schema: z.core.$ZodTypes, path: string): void {
  const { checks = [] } = schema._zod.def
  for (const check of checks) {
    const isRepresented = check._zod.def.check !== 'custom' || isMirrored(check)
    assert(isRepresented, `${path}: a refinement has no CEL rule`)
  }
}

function structural(json: unknown, path: string): StructuralSchema {
  const node = { ...asNode(json, path) }
  if (node['additionalProperties'] === false) delete node['additionalProperties']
  for (const key of ['minItems', 'minLength']) if (node[key] === 0) delete node[key]
  if (node['x-kubernetes-int-or-string'] === true) return intOrString(node, path)
  if (isToldByCel(node)) delete node['pattern']
  if (isScalar(node)) return scalar(node, path)
  if (isNumberOrText(node)) return numberOrText(node, path)
  if (node['x-kubernetes-preserve-unknown-fields'] === true) delete node['additionalProperties']
  for (const key of Object.keys(node)) {
    assert(KNOWN.has(key) && key !== 'anyOf', `${path}: a CRD has no keyword '${key}' here`)
  }
  checkBounds(node, path)
  return { ...node, ...children(node, path), ...integerFormat(node) }
}

/** True for a pattern that is part of a rule too, which says in words what is wanted instead of showing the pattern. */
function isToldByCel({ pattern, 'x-kubernetes-validations': rules }: StructuralSchema): boolean {
  if (typeof pattern !== 'string' || !Array.isArray(rules)) return false
  const match = `self.matches(${celPattern(new RegExp(pattern))})`
  return rules.some(({ rule }) => String(rule).startsWith(match))
}

function asNode(json: unknown, path: string): StructuralSchema {
  assert(typeof json === 'object' && json !== null, `${path}: a schema is no object`)
  return Object.fromEntries(Object.entries(json))
}

function children(node: StructuralSchema, path: string): StructuralSchema {
  const { properties, items, additionalProperties } = node
  return {
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        Object.entries(asNode(properties, path)).map(([name, child]) => [
          name,
          structural(child, `${path}.${name}`),
        ]),
      ),
    }),
    ...(items !== undefined && { items: structural(items, `${path}[]`) }),
    ...(additionalProperties !== undefined && {
      additionalProperties: structural(additionalProperties, `${path}{}`),
    }),
  }
}

function integerFormat(node: StructuralSchema): StructuralSchema {
  if (node['type'] !== 'integer') return {}
  return { format: Number(node['maximum']) > INT32_MAX ? 'int64' : 'int32' }
}

/** Builds the schema of an integer or a text. The API server takes exactly these two alternatives; their bounds stand beside. */
function intOrString(node: StructuralSchema, path: string): StructuralSchema {
  const { anyOf, ...rest } = node
  assert(Array.isArray(anyOf), `${path}: a number or text wants two alternatives`)
  const [integer, text] = anyOf.map((alternative) => structural(alternative, path))
  const { type, format, ...bounds } = { ...integer, ...text }
  assert(
    integer?.['type'] === 'integer' && type === 'string' && format === 'int32',
    `${path}: a number or text wants an int32 and a text`,
  )
  return { ...rest, ...bounds, anyOf: [{ type: 'integer' }, { type: 'string' }] }
}

function isScalar({ anyOf, ...node }: StructuralSchema): boolean {
  return (
    node['x-kubernetes-preserve-unknown-fields'] === true &&
    Array.isArray(anyOf) &&
    anyOf.length === 3
  )
}

/** Builds a node without a type, which takes numbers, texts, true and false. Bounds that nothing fits shut out what is else there. */
function scalar({ anyOf, ...rest }: StructuralSchema, path: string): StructuralSchema {
  assert(Array.isArray(anyOf), `${path}: a scalar wants three alternatives`)
  const [number, text, boolean] = anyOf.map((alternative) => asNode(alternative, path))
  const { type, ...shape } = structural(text, path)
  const isKnown =
    number?.['type'] === 'number' && type === 'string' && boolean?.['type'] === 'boolean'
  assert(isKnown, `${path}: a scalar wants a number, a text and a boolean`)
  return { ...rest, ...shape, ...NO_OTHER }
}

/** Shuts out lists and objects. */
const NO_OTHER = { minItems: 1, maxItems: 0, minProperties: 1, maxProperties: 0 }

function isNumberOrText(node: StructuralSchema): boolean {
  return node['x-kubernetes-preserve-unknown-fields'] === true && node['anyOf'] !== undefined
}

/**
 * Builds a node without a type, which takes fractions too. Bounds that nothing fits shut out what is neither a number nor a text.
 */
function numberOrText({ anyOf, ...rest }: StructuralSchema, path: string): StructuralSchema {
  assert(Array.isArray(anyOf), `${path}: a number or text wants two alternatives`)
  const [number, text] = anyOf.map((alternative) => asNode(alternative, path))
  const { minimum, maximum } = number ?? {}
  assert(
    number?.['type'] === 'number' && minimum !== undefined && maximum !== undefined,
    `${path}: a number or text wants a number with bounds`,
  )
  const { type, ...shape } = structural(text, path)
  assert(type === 'string', `${path}: a number or text wants a text`)
  return { ...rest, minimum, maximum, ...shape, ...NO_OTHER, not: { enum: [true, false] } }
}

function checkBounds(node: StructuralSchema, path: string): void {
  const has = (key: string): boolean => node[key] !== undefined
  const { type, pattern } = node
  assert(typeof type === 'string', `${path}: a node has no type`)
  const isOpenMap = has('additionalProperties') && !has('maxProperties')
  const isOpenText = type === 'string' && !has('maxLength') && !has('enum')
  const isOpenList = type === 'array' && !has('maxItems')
  // zod gives every integer the bounds of a double.
  const isOpenNumber =
    type === 'number' || (type === 'integer' && Number(node['minimum']) === Number.MIN_SAFE_INTEGER)
  const isBounded = !(isOpenMap || isOpenText || isOpenList || isOpenNumber)
  assert(isBounded, `${path}: a ${type} has no bound`)
  if (typeof pattern === 'string') checkPattern(pattern, path)
}

/** Refuses a pattern with look-around or references back, which RE2 lacks. */
function checkPattern(pattern: string, path: string): void {
  const isForeign = /\(\?(?!:)|\\[1-9k]/.test(pattern.replaceAll('\\\\', ''))
  assert(!isForeign, `${path}: RE2 does not know the pattern ${pattern}`)
}
