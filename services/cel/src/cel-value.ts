/** A value as expressions see it: JSON whose whole numbers are ints, and other numbers doubles. */
export type CelValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | readonly CelValue[]
  | ReadonlyMap<string, CelValue>

/**
 * Converts JSON to a value for expressions. A member that is undefined is left out.
 *
 * @param json - copied; of any depth.
 */
export function toCelValue(json: unknown): CelValue {
  const left: (() => void)[] = []
  const convert = (value: unknown): CelValue => {
    if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
    if (typeof value === 'string' || typeof value === 'boolean') return value
    if (typeof value !== 'object' || value === null) return null
    if (Array.isArray(value)) {
      const list: CelValue[] = []
      left.push(() => {
        for (const item of value) list.push(convert(item))
      })
      return list
    }
    // The library takes the type of an object from `constructor`, which may be a key.
    const map = new Map<string, CelValue>()
    left.push(() => {
      for (const [name, member] of Object.entries(value)) {
        if (member !== undefined) map.set(name, convert(member))
      }
    })
    return map
  }
  const converted = convert(json)
  for (let next = left.pop(); next !== undefined; next = left.pop()) next()
  return converted
}
