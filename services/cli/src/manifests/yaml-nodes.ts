import { isMap, isScalar, isSeq, type Node } from 'yaml'

/**
 * Finds the offset of the node at a path, or of its nearest parent if the path leads to none. For a member of a map, it is the
 * offset of the key.
 */
export function offsetOf(root: Node, path: readonly PropertyKey[]): number {
  let node: unknown = root
  let offset = startOf(root) ?? 0
  for (const key of path) {
    const [at, child] = isMap(node) ? member(node.items, key) : element(node, key)
    const start = startOf(at)
    if (start === undefined) return offset
    offset = start
    node = child
  }
  return offset
}

function member(
  pairs: readonly { readonly key: unknown; readonly value: unknown }[],
  key: PropertyKey,
): readonly [unknown, unknown] {
  const pair = pairs.find((one) => isScalar(one.key) && String(one.key.value) === String(key))
  return [pair?.key, pair?.value]
}

function element(node: unknown, key: PropertyKey): readonly [unknown, unknown] {
  const found = isSeq(node) ? node.items[Number(key)] : undefined
  return [found, found]
}

/** Gives the offset at which a node begins; undefined for a value that is not a node. */
export function startOf(node: unknown): number | undefined {
  const { range }: { range?: unknown } = Object(node)
  const start: unknown = Array.isArray(range) ? range[0] : undefined
  return typeof start === 'number' ? start : undefined
}
