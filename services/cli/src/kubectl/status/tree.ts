/** Why something is not as it should be. */
export interface Cause {
  /** One CamelCase word. */
  readonly reason: string
  readonly message: string
}

/**
 * - `Ready`: requests are answered.
 * - `Degraded`: requests are answered, and something is wrong.
 * - `NotReady`: requests are not answered. Of a pod: it takes none.
 * - `Missing`: a step names it, and there is none.
 * - `Unknown`: the user may not read it.
 */
export type NodeState = 'Ready' | 'Degraded' | 'NotReady' | 'Missing' | 'Unknown'

/** A resource or a pod, and what it stands on. */
export interface StatusNode {
  readonly kind: 'Ensemble' | 'Model' | 'Router' | 'Pod'
  readonly name: string
  /** Of the Ensemble above, which runs this. */
  readonly step?: string
  readonly state: NodeState
  /** What there is of it, `1/2 pods` say. */
  readonly detail?: string
  /** Of what is not Ready. */
  readonly cause?: Cause
  readonly children: readonly StatusNode[]
}

/** True if something is wrong with it or below it. */
export function isBroken({ state, children }: StatusNode): boolean {
  return state !== 'Ready' || children.some((child) => child.kind !== 'Pod' && isBroken(child))
}
