/**
 * Converts a type of Kubernetes' client to the JSON of the API server: times are strings, names lose the client's leading
 * underscore (`_continue`), and all members are readonly.
 */
export type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Wire<Item>[]
    : T extends object
      ? { readonly [K in keyof T as K extends `_${infer Name}` ? Name : K]: Wire<T[K]> }
      : T
