/** The questions that wrong references leave open. A fault that may follow from such a reference is not told beside it. */
export interface Doubts {
  /** Names of tensors that such a reference may mean. They are not reported as unread. */
  readonly tensors: ReadonlySet<string>
  /** Indexes of the steps that such a reference may mean. */
  readonly steps: ReadonlySet<number>
  /** Indexes of the steps of which such a reference was left out. They may read more than the graph says. */
  readonly partial: ReadonlySet<number>
}

export const NO_DOUBTS: Doubts = { tensors: new Set(), steps: new Set(), partial: new Set() }
