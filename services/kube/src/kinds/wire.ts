/**
 * Is a type of Kubernetes' client as the API server writes it: times are texts, a field that is a word of JavaScript has its own name,
 * and nothing is changed in place.
 */
export type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Wire<Item>[]
    : T extends object
      ? { readonly [K in keyof T as K extends `_${infer Name}` ? Name : K]: Wire<T[K]> }
      : T
