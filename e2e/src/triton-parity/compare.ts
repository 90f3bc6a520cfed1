import { type Answer, type Case, surfaceOf } from './case.ts'

/** One place in which two answers differ. */
export interface Difference {
  /** Which call of the case. */
  readonly call: number
  readonly surface: string
  /** Within the answer, such as `message.outputs.0.shape`. */
  readonly path: string
  readonly triton: unknown
  readonly tutti: unknown
  /** The difference without the names and numbers of the case: equal for those with one cause. */
  readonly kind: string
}

const SHOWN = 120

/** All differences between the answers of Triton and of Tutti to a case. */
export function compare(
  test: Case,
  triton: readonly Answer[],
  tutti: readonly Answer[],
): readonly Difference[] {
  return test.calls.flatMap((call, at) => {
    const surface = surfaceOf(call)
    return leaves('', triton[at], tutti[at]).map(({ path, a, b }) => {
      const where = path.replaceAll(/\.\d+/g, '.N')
      const kind = `${surface}: ${where}: ${general(a)} | ${general(b)}`
      return { call: at, surface, path, triton: a, tutti: b, kind }
    })
  })
}

interface Leaf {
  readonly path: string
  readonly a: unknown
  readonly b: unknown
}

function leaves(path: string, a: unknown, b: unknown): readonly Leaf[] {
  if (Object.is(a, b)) return []
  if (!isBranch(a) || !isBranch(b) || Array.isArray(a) !== Array.isArray(b)) return [{ path, a, b }]
  const [left, right] = [new Map(Object.entries(a)), new Map(Object.entries(b))]
  const keys = [...new Set([...left.keys(), ...right.keys()])]
  // Elements that a list has too many or too few shift all that follows: one difference.
  if (Array.isArray(a) && left.size !== right.size) return [{ path, a, b }]
  return keys.flatMap((key) =>
    leaves(path === '' ? key : `${path}.${key}`, left.get(key), right.get(key)),
  )
}

function isBranch(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function general(value: unknown): string {
  if (typeof value !== 'string') {
    if (value === undefined) return 'nothing'
    return isBranch(value)
      ? `a ${Array.isArray(value) ? 'list' : 'message'}`
      : JSON.stringify(value)
  }
  return value
    .replaceAll(/'[^']*'/g, "'X'")
    .replaceAll(/"[^"]*"/g, '"X"')
    .replaceAll(/\[[^\]]*\]/g, '[..]')
    .replaceAll(/-?\d+/g, 'N')
    .replaceAll(/\s+/g, ' ')
    .slice(0, SHOWN)
}
