/** T without `undefined` as a value, at every depth: a field is there, or it is not. */
export type Plain<T> = T extends readonly (infer Item)[]
  ? readonly Plain<Item>[]
  : T extends object
    ? { [K in keyof T]: Plain<Exclude<T[K], undefined>> }
    : T

/** A copy without members that are undefined. @param value - JSON, but for those. */
export function toPlain<T extends object>(value: T): Plain<T> {
  return JSON.parse(JSON.stringify(value))
}
