import type { PlainObject } from '@tutti/kube/testing'

/**
 * Lists the paths of all fields without subfields below a CRD's schema, e.g. `steps[].inputMap{}`. A field that may hold anything
 * counts as one path.
 */
export function leavesOf(schema: PlainObject, path = ''): readonly string[] {
  const { properties = {}, items, additionalProperties } = schema
  if (items !== undefined) return leavesOf(items, `${path}[]`)
  if (additionalProperties !== undefined) return leavesOf(additionalProperties, `${path}{}`)
  const fields = Object.entries<PlainObject>(properties)
  if (fields.length === 0) return [path]
  return fields.flatMap(([name, field]) => leavesOf(field, path === '' ? name : `${path}.${name}`))
}

/** Lists the paths of all lists and maps below a schema, written as by leavesOf but without the brackets at the end. */
export function collectionsOf(
  schema: PlainObject,
  path = '',
): readonly { readonly path: string; readonly mayBeEmpty: boolean }[] {
  const { properties = {}, items, additionalProperties, minItems = 0, minProperties = 0 } = schema
  const below = items ?? additionalProperties
  if (below !== undefined) {
    const brackets = items === undefined ? '{}' : '[]'
    const mayBeEmpty = minItems + minProperties === 0
    return [{ path, mayBeEmpty }, ...collectionsOf(below, `${path}${brackets}`)]
  }
  return Object.entries<PlainObject>(properties).flatMap(([name, field]) =>
    collectionsOf(field, path === '' ? name : `${path}.${name}`),
  )
}

/** Removes the keys of maps from a path: `resources.limits{cpu}` becomes `resources.limits{}`. */
export function leafOf(path: string): string {
  return path.replaceAll(/\{[^}]*\}/g, '{}')
}

/**
 * Copies an object with one field changed. It makes missing objects and lists on the way to the field.
 *
 * @param path - a path of leavesOf with keys of maps in the braces. `[]` means the first element of a list.
 * @param value - the new value; undefined removes the field.
 */
export function withField(object: PlainObject, path: string, value: unknown): PlainObject {
  const [, name = '', kind, key = '', rest = ''] =
    /^([^.[{]+)(\[\]|\{([^}]*)\})?(.*)$/.exec(path) ?? []
  const deeper = (inner: unknown): unknown => {
    if (rest === '') return value
    if (rest.startsWith('.')) return withField(Object(inner), rest.slice(1), value)
    return withField({ inner }, `inner${rest}`, value)['inner']
  }
  const old: unknown = object[name]
  if (old === undefined && value === undefined) return object
  if (kind === undefined) return withMember(object, name, deeper(old))
  if (kind !== '[]') {
    const map: PlainObject = Object(old)
    return { ...object, [name]: withMember(map, key, deeper(map[key])) }
  }
  const [first, ...others] = Array.isArray(old) ? old : []
  return { ...object, [name]: [deeper(first), ...others] }
}

function withMember(object: PlainObject, name: string, value: unknown): PlainObject {
  if (value !== undefined) return { ...object, [name]: value }
  const { [name]: _, ...others } = object
  return others
}
