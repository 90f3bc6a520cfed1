import type { PlainObject } from '@tutti/kube/testing'

/** The place where a change of a field is seen. */
export type Reach =
  /** Place: the objects that the operator makes. */
  | { readonly at: 'children' }
  /** Place: only the conditions. The objects that the operator made stay as they are. */
  | { readonly at: 'conditions' }
  /** Place: what is stored of a Model once pods serve it, which Ensembles are checked against. */
  | { readonly at: 'accepted' }
  /** Place: what a rollout does when no node has a device left. */
  | { readonly at: 'full nodes' }
  /** Place: the decisions of the operator's own scaling. */
  | { readonly at: 'scaling' }
  /** Place: the API server, which refuses the change with a message that matches `says`. */
  | { readonly at: 'server'; readonly says: RegExp }
  /** Place: the condition `TYPE=STATUS/REASON` by which the operator refuses the change, with a message that matches `says`. */
  | { readonly at: 'operator'; readonly condition: string; readonly says: RegExp }

/** A change of one field of a spec, and where the change is seen. */
export interface FieldChange {
  /** Path of the field, as withField takes it. */
  readonly path: string
  /** Value before the change; undefined: the field is absent. */
  readonly from: unknown
  readonly to: unknown
  /** Further fields of the spec, in addition to those of all resources of the kind. */
  readonly rest: PlainObject
  readonly reach: Reach
}

/** A field, with its values before and after. */
type Row = readonly [path: string, from: unknown, to: unknown]

/** Builds changes that are seen in the objects that the operator makes. */
export function changes(rest: PlainObject, rows: readonly Row[]): readonly FieldChange[] {
  return rows.map(([path, from, to]) => ({ path, from, to, rest, reach: { at: 'children' } }))
}

/** Builds one change that is seen at `reach`. */
export function change(reach: Reach, [path, from, to]: Row, rest: PlainObject = {}): FieldChange {
  return { path, from, to, rest, reach }
}
