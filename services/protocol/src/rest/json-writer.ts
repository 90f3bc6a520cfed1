/**
 * Writes a value as JSON; unlike JSON.stringify it takes bigint, as an integer with all its digits.
 * Members that are undefined are left out.
 */
export function toJsonText(value: unknown): string {
  if (typeof value === 'bigint') return value.toString()
  if (Array.isArray(value)) return `[${value.map((item) => toJsonText(item)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .map(([key, item]) => `${JSON.stringify(key)}:${toJsonText(item)}`)
  return `{${members.join(',')}}`
}
