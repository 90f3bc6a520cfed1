import { ROUTER_NAME } from '@tutti/api'
import type { KubeObject } from '@tutti/kube'
import type { RouterObject } from '../../api/kinds.ts'
import { findCondition } from '../../runtime/conditions.ts'

/** The reason why a namespace has no router, or not the desired one. */
export interface RouterTrouble {
  /** One CamelCase word, for conditions. */
  readonly reason: string
  readonly message: string
  /** True if the trouble ends without a person. */
  readonly isPassing?: boolean
  /** True if the Router is ready all the same, so that requests are answered. */
  readonly isServed?: boolean
}

/** The reason of a Router's Degraded that is about its pods with built-ins: most Models and Ensembles do not need them. */
export const BUILTINS_DEGRADED = 'BuiltinsDegraded'

/** Returns the key of a namespace's Router. */
export function routerKeyOf(namespace: string): string {
  return `${namespace}/${ROUTER_NAME}`
}

/** Returns the key of the Router of an object's namespace, as a list for sources. */
export function routerKeysOf({ metadata }: KubeObject): readonly string[] {
  return metadata.namespace === undefined ? [] : [routerKeyOf(metadata.namespace)]
}

/** Reads the trouble from a Router's conditions, so that Models and Ensembles can repeat it; undefined if there is none. Built-ins are told by the steps that run them. Pure. */
export function troubleOf(router: RouterObject | undefined): RouterTrouble | undefined {
  const conditions = router?.status?.conditions
  const [degraded, progressing, ready] = ['Degraded', 'Progressing', 'Ready'].map((type) =>
    findCondition(conditions, type),
  )
  if (degraded?.status === 'True' && degraded.reason !== BUILTINS_DEGRADED) {
    const { reason, message } = degraded
    return { reason, message, ...(ready?.status === 'True' && { isServed: true }) }
  }
  const isPassing = progressing?.status === 'True' && progressing.reason === ready?.reason
  if (!isPassing) return undefined
  return { reason: progressing.reason, message: progressing.message, isPassing }
}

/** True if two states of a Router differ in their trouble. */
export function hasOtherTrouble(now: RouterObject, before: RouterObject): boolean {
  return JSON.stringify(troubleOf(now)) !== JSON.stringify(troubleOf(before))
}
