import type { PodSpec } from '@tutti/kube'

type JsonObject = Readonly<Record<string, unknown>>

/** The directive of a strategic merge patch. */
const PATCH = '$patch'

/** Field that identifies an element, by the name of its list. Lists that are not here are replaced as a whole. */
const KEYS: Readonly<Record<string, string>> = {
  containers: 'name',
  initContainers: 'name',
  env: 'name',
  volumes: 'name',
  volumeMounts: 'mountPath',
  volumeDevices: 'devicePath',
  imagePullSecrets: 'name',
  topologySpreadConstraints: 'topologyKey',
  readinessGates: 'conditionType',
  hostAliases: 'ip',
  resourceClaims: 'name',
  claims: 'name',
}

/** Elements that stand for one choice of several: a `value` beside the `valueFrom` that was there would be refused. */
const WHOLE: ReadonlySet<string> = new Set(['env', 'volumes'])

/** Both lists count. */
const JOINED: ReadonlySet<string> = new Set(['tolerations'])

/**
 * Merges a user's pod spec into that of the operator. Objects are merged, and lists with a key, such as a name, by this key.
 * Other lists and values are replaced, but tolerations are joined. `$patch` deletes or replaces an object or an element, as in a
 * strategic merge patch. The result is not checked; the API server does that.
 */
export function overlayPodSpec(spec: PodSpec, overlay: JsonObject | undefined): PodSpec {
  if (overlay === undefined) return spec
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as far as the user's fields fit; the API server refuses others
  return mergeObjects({ ...spec }, overlay) as unknown as PodSpec
}

function mergeObjects(base: JsonObject, overlay: JsonObject): JsonObject {
  const merged: Record<string, unknown> = { ...base }
  for (const [field, value] of Object.entries(overlay)) {
    if (isDeleted(value)) delete merged[field]
    else merged[field] = merge(field, base[field], value)
  }
  return merged
}

function merge(field: string, base: unknown, overlay: unknown): unknown {
  if (Array.isArray(overlay)) {
    const elements = overlay.filter((element) => !isReplacing(element))
    const isMerged = Array.isArray(base) && elements.length === overlay.length
    const list = isMerged ? mergeLists(field, base, elements) : elements
    return list.filter((element) => !isDeleted(element))
  }
  if (!isObject(overlay)) return overlay
  const { [PATCH]: how, ...fields } = overlay
  if (how === 'replace') return fields
  return isObject(base) ? mergeObjects(base, overlay) : overlay
}

function mergeLists(
  field: string,
  base: readonly unknown[],
  overlay: readonly unknown[],
): readonly unknown[] {
  if (JOINED.has(field)) return [...base, ...overlay]
  const key = KEYS[field]
  if (key === undefined) return overlay
  const merged = [...base]
  // The first of each; a map, because a user's list may have as many elements as fit into a resource.
  const indexes = new Map<unknown, number>()
  for (const [index, known] of merged.entries()) {
    const id = keyOf(known, key)
    if (!indexes.has(id)) indexes.set(id, index)
  }
  for (const element of overlay) {
    const id = keyOf(element, key)
    const index = indexes.get(id)
    if (index !== undefined) {
      const isWhole = WHOLE.has(field) || isDeleted(element)
      merged[index] = isWhole ? element : merge('', merged[index], element)
      continue
    }
    indexes.set(id, merged.length)
    merged.push(element)
  }
  return merged
}

/** True for what takes away an object, or the element of a list with the same name. */
function isDeleted(value: unknown): boolean {
  return isObject(value) && value[PATCH] === 'delete'
}

/** True for the element that only says that a list keeps nothing of what was there. */
function isReplacing(element: unknown): boolean {
  return isObject(element) && element[PATCH] === 'replace' && Object.keys(element).length === 1
}

function keyOf(element: unknown, key: string): unknown {
  return isObject(element) ? element[key] : undefined
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
