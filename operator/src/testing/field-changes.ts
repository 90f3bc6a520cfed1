import type { PlainObject } from '@tutti/kube/testing'

/** Where a change of a field is seen. */
export type Reach =
  /** In what the operator makes. */
  | { readonly at: 'children' }
  /** In conditions only; what was made stays as it is. */
  | { readonly at: 'conditions' }
  /** In what the operator's own scaling decides on. */
  | { readonly at: 'scaling' }
  /** The API server refuses it, with such a message. */
  | { readonly at: 'server'; readonly says: RegExp }
  /** The operator refuses it, with a condition `TYPE=STATUS/REASON` and such a message; what was made stays as it is. */
  | { readonly at: 'operator'; readonly condition: string; readonly says: RegExp }

/** One field of a spec that is changed alone, and where that is seen. */
export interface FieldChange {
  /** As withField has it. */
  readonly path: string
  /** Absent if undefined. */
  readonly from: unknown
  readonly to: unknown
  /** The rest of the spec, beside what all resources of the kind have. */
  readonly rest: PlainObject
  readonly reach: Reach
}

/** A field, with its values before and after. */
type Row = readonly [path: string, from: unknown, to: unknown]

/** Fields that reach children. */
export function changes(rest: PlainObject, rows: readonly Row[]): readonly FieldChange[] {
  return rows.map(([path, from, to]) => ({ path, from, to, rest, reach: { at: 'children' } }))
}

/** One field that is seen elsewhere. */
export function change(reach: Reach, [path, from, to]: Row, rest: PlainObject = {}): FieldChange {
  return { path, from, to, rest, reach }
}
