/** The type T without `undefined` as a value of members, at every depth. */
export type Plain<T> = T extends readonly (infer Item)[]
  ? readonly Plain<Item>[]
  : T extends object
    ? { [K in keyof T]: Plain<Exclude<T[K], undefined>> }
    : T

/** Copies a value without members that are undefined, at every depth. @param value - otherwise a JSON value. */
export function toPlain<T extends object>(value: T): Plain<T> {
  return JSON.parse(JSON.stringify(value))
}
