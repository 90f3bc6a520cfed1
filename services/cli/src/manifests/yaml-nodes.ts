import { isMap, isScalar, isSeq, type Node } from 'yaml'

/** The offset of the node at `path`, as far as there is one; of a member of a map, that of its key. */
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

/** Where a node begins; undefined for what is no node. */
export function startOf(node: unknown): number | undefined {
  const { range }: { range?: unknown } = Object(node)
  const start: unknown = Array.isArray(range) ? range[0] : undefined
  return typeof start === 'number' ? start : undefined
}
