import { isAlias, isMap, isScalar, isSeq, type Node } from 'yaml'

const MAX_DEPTH = 100

/** Why a node cannot become JSON. */
export interface Refusal {
  readonly node: Node
  readonly message: string
}

/** The first thing in a node that JSON could not carry as it is written, or that is nested too deep. */
export function findRefusal(node: unknown, depth = 0): Refusal | undefined {
  if (!isMap(node) && !isSeq(node)) return undefined
  if (depth > MAX_DEPTH) return { node, message: `got more than ${MAX_DEPTH} levels` }
  for (const item of node.items) {
    const found = isMap(node) ? refusePair(node, item, depth) : findRefusal(item, depth + 1)
    if (found !== undefined) return found
  }
  return undefined
}

function refusePair(map: Node, pair: unknown, depth: number): Refusal | undefined {
  const { key, value }: { key?: unknown; value?: unknown } = Object(pair)
  if (!isScalar(key) && !isAlias(key)) {
    return { node: map, message: 'got a key that is a list or a map, want text' }
  }
  if (isScalar(key) && key.value === '__proto__') {
    return { node: key, message: "got the key '__proto__', want another" }
  }
  return findRefusal(value, depth + 1)
}

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
