import { type Available, chance, type Drawing, pick, some } from './drawing.ts'
import type { Condition } from './sketch.ts'

/** Draws a condition over tensors and parameters. */
export function drawCondition(d: Drawing, tensors: readonly Available[], depth = 0): Condition {
  const { roll } = d
  if (depth < 2 && chance(d, 30)) {
    const draw = () => drawCondition(d, tensors, depth + 1)
    if (chance(d, 25)) return { kind: 'not', of: draw() }
    return { kind: pick(roll, ['and', 'or']), of: [draw(), draw()] }
  }
  const tensor = some(roll, tensors)
  if (tensor === undefined || chance(d, 20)) return drawParameter(d)
  return drawComparison(d, tensor)
}

function drawParameter(d: Drawing): Condition {
  const has: Condition = { kind: 'has', name: 'tier' }
  const is: Condition = { kind: 'parameter', name: 'tier', value: 'gold' }
  const how = d.roll(10)
  if (how < 5) return { kind: 'and', of: [has, is] }
  return how < 9 ? has : is
}

function drawComparison(d: Drawing, { ref, type }: Available): Condition {
  const { roll } = d
  const { datatype, dims } = type
  // Extents that are open may be empty.
  const isSafe = dims.every((extent) => extent > 0)
  const least: Condition = { kind: 'size', ref, least: 1 }
  if (!isSafe && chance(d, 30)) return least
  const index = isSafe && !chance(d, 90) ? 1 : 0
  const compare = drawElement(d, { ref, index, datatype })
  if (isSafe || chance(d, 15)) return compare
  return { kind: pick(roll, ['and', 'and', 'or']), of: [least, compare] }
}

function drawElement(
  d: Drawing,
  o: Pick<Extract<Condition, { kind: 'compare' }>, 'ref' | 'index' | 'datatype'>,
): Condition {
  const { ref, index, datatype } = o
  if (datatype === 'BOOL') return { kind: 'compare', ...o, operator: '==', literal: chance(d, 50) }
  if (datatype === 'BYTES') {
    return { kind: 'compare', ...o, operator: pick(d.roll, ['<', '>']), literal: 't500' }
  }
  if (datatype === 'FP32') {
    const literal = d.roll(2 ** 20) - 2 ** 19 + 0.5
    return { kind: 'compare', ...o, operator: pick(d.roll, ['<', '>']), literal }
  }
  if (chance(d, 15)) return { kind: 'divide', ref, index }
  return { kind: 'compare', ...o, operator: pick(d.roll, ['<', '>', '==']), literal: d.roll(5) }
}

/** Writes a condition in CEL. */
export function printCondition(condition: Condition): string {
  switch (condition.kind) {
    case 'not':
      return `!(${printCondition(condition.of)})`
    case 'and':
    case 'or': {
      const sign = condition.kind === 'and' ? '&&' : '||'
      return `(${condition.of.map(printCondition).join(` ${sign} `)})`
    }
    case 'has':
      return `"${condition.name}" in parameters`
    case 'parameter':
      return `parameters["${condition.name}"] == "${condition.value}"`
    case 'size':
      return `size(tensors["${condition.ref}"]) >= ${condition.least}`
    case 'divide':
      return `6 / tensors["${condition.ref}"][${condition.index}] > 2`
    case 'compare':
  }
  const { ref, index, operator, literal } = condition
  const text = typeof literal === 'string' ? `"${literal}"` : String(literal)
  return `tensors["${ref}"][${index}] ${operator} ${text}`
}
