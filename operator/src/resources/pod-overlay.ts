import type { PodSpec } from '@tutti/kube'

type JsonObject = Readonly<Record<string, unknown>>

/** By what the elements of a list are told apart; lists that are not here are replaced. */
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
 * The pod spec with what a user wants beyond it: objects are merged, lists by name or what stands for it, other lists and values
 * are replaced; null takes a field away. The API server checks the result.
 */
export function overlayPodSpec(spec: PodSpec, overlay: JsonObject | undefined): PodSpec {
  if (overlay === undefined) return spec
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as far as the user's fields fit; the API server refuses others
  return mergeObjects({ ...spec }, overlay) as unknown as PodSpec
}

function mergeObjects(base: JsonObject, overlay: JsonObject): JsonObject {
  const merged: Record<string, unknown> = { ...base }
  for (const [field, value] of Object.entries(overlay)) {
    if (value === null) delete merged[field]
    else merged[field] = merge(field, base[field], value)
  }
  return merged
}

function merge(field: string, base: unknown, overlay: unknown): unknown {
  if (Array.isArray(base) && Array.isArray(overlay)) return mergeLists(field, base, overlay)
  return isObject(base) && isObject(overlay) ? mergeObjects(base, overlay) : overlay
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
      merged[index] = WHOLE.has(field) ? element : merge('', merged[index], element)
      continue
    }
    indexes.set(id, merged.length)
    merged.push(element)
  }
  return merged
}

function keyOf(element: unknown, key: string): unknown {
  return isObject(element) ? element[key] : undefined
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
