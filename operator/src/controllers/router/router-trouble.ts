import { ROUTER_NAME } from '@tutti/api'
import type { KubeObject } from '@tutti/kube'
import type { RouterObject } from '../../api/kinds.ts'
import { findCondition } from '../../runtime/conditions.ts'

/** Why a namespace has no router, or not the one that is wanted. */
export interface RouterTrouble {
  /** One CamelCase word, for conditions. */
  readonly reason: string
  readonly message: string
  /** True if it ends by itself. */
  readonly isPassing?: boolean
  /** True if requests go on: router pods are ready. The status of the Router says so. */
  readonly isServed?: boolean
}

/** The key of the Router of a namespace. */
export function routerKeyOf(namespace: string): string {
  return `${namespace}/${ROUTER_NAME}`
}

/** The key of the Router that serves an object's namespace, as sources give keys. */
export function routerKeysOf({ metadata }: KubeObject): readonly string[] {
  return metadata.namespace === undefined ? [] : [routerKeyOf(metadata.namespace)]
}

/** Reads what the status of a Router says of its trouble, see `conditionsOfRouter`: Models and Ensembles repeat it. Pure. */
export function troubleOf(router: RouterObject | undefined): RouterTrouble | undefined {
  const conditions = router?.status?.conditions
  const [degraded, progressing, ready] = ['Degraded', 'Progressing', 'Ready'].map((type) =>
    findCondition(conditions, type),
  )
  if (degraded?.status === 'True') {
    const { reason, message } = degraded
    return { reason, message, ...(ready?.status === 'True' && { isServed: true }) }
  }
  const isPassing = progressing?.status === 'True' && progressing.reason === ready?.reason
  if (!isPassing) return undefined
  return { reason: progressing.reason, message: progressing.message, isPassing }
}

/** Tells states of a Router apart by their trouble. */
export function hasOtherTrouble(now: RouterObject, before: RouterObject): boolean {
  return JSON.stringify(troubleOf(now)) !== JSON.stringify(troubleOf(before))
}
