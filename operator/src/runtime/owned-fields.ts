import type { JsonObject, KubeObject, Stored } from '@tutti/kube'
import { FIELD_MANAGER } from './children.ts'

/**
 * Returns the fields of an object that the operator owns by its last apply, with their present values. The server takes a field
 * from the operator when another client changes it. If nobody changed anything, the result is the applied object.
 *
 * Elements of lists come in the object's order. A field that is owned as a whole (a selector, the rules of a policy) includes
 * whatever the server added to it.
 *
 * @returns parts of the object itself, not copies; undefined if the operator has applied nothing.
 * @see Kubernetes, server-side apply, `metadata.managedFields`
 */
export function ownedFieldsOf(
  object: Stored<KubeObject>,
): Pick<KubeObject, 'metadata'> | undefined {
  const { name, namespace, managedFields = [] } = object.metadata
  const entry = managedFields.find(
    ({ manager, operation, subresource, apiVersion }) =>
      manager === FIELD_MANAGER &&
      operation === 'Apply' &&
      subresource === undefined &&
      apiVersion === object.apiVersion,
  )
  if (entry?.fieldsV1 === undefined) return undefined
  const owned = pickMembers(object, entry.fieldsV1)
  const metadata = {
    ...toObject(owned['metadata']),
    name,
    ...(namespace !== undefined && { namespace }),
  }
  return { ...owned, metadata }
}

/** @param fields - FieldsV1: `f:` names a member, `k:` an element by its keys, `v:` one of a set; what has none of them is owned as a whole. */
function pick(value: unknown, fields: unknown): unknown {
  if (!isObject(fields) || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return isWhole(fields) ? value : pickElements(value, fields)
  return isWhole(fields) ? value : pickMembers(value, fields)
}

function isWhole(fields: JsonObject): boolean {
  for (const _ in fields) return false
  return true
}

function pickMembers(value: object, fields: JsonObject): Record<string, unknown> {
  // Not by assignment, which a key `__proto__` of a ConfigMap would turn into a prototype.
  return Object.fromEntries(
    Object.keys(fields).flatMap((path) => {
      const name = path.slice(2)
      const isIn = path.startsWith('f:') && Object.hasOwn(value, name)
      return isIn ? [[name, pick(Reflect.get(value, name), fields[path])]] : []
    }),
  )
}

function pickElements(elements: readonly unknown[], fields: JsonObject): unknown[] {
  const wanted = Object.keys(fields).flatMap((path) => {
    const key = toKey(path)
    return key === undefined ? [] : [{ key, fields: fields[path] }]
  })
  return elements.flatMap((element) => {
    const found = wanted.find(({ key }) => isOf(element, key))
    return found === undefined ? [] : [pick(element, found.fields)]
  })
}

/** The key by which an element is found: some of its members, or what it is. */
type Key =
  | { readonly members: readonly (readonly [string, unknown])[] }
  | { readonly value: unknown }

/** @returns undefined for what names no element: `.` is the list itself. */
function toKey(path: string): Key | undefined {
  const isKey = path.startsWith('k:')
  if (!isKey && !path.startsWith('v:')) return undefined
  const value = parseJson(path.slice(2))
  if (!isKey) return { value }
  return isObject(value) ? { members: Object.entries(value) } : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // No server writes it; it names nothing.
    return undefined
  }
}

function isOf(element: unknown, key: Key): boolean {
  if ('value' in key) return element === key.value
  return isObject(element) && key.members.every(([name, value]) => element[name] === value)
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function toObject(value: unknown): object {
  return isObject(value) ? value : {}
}
