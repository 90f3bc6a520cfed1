import type { RouterObject } from '../../api/kinds.ts'
import { isManaged } from '../../runtime/children.ts'

/** The operator made the Router, and no user has given it settings: it is the operator's to change and to delete. */
export function isUntouched(router: RouterObject): boolean {
  return isManaged(router) && JSON.stringify(router.spec) === '{}'
}
