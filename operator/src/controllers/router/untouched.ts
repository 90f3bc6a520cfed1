import type { RouterObject } from '../../api/kinds.ts'
import { isManaged } from '../../runtime/children.ts'

/** True if the operator made the Router and no user has given it settings. The operator may then delete it. */
export function isUntouched(router: RouterObject): boolean {
  return isManaged(router) && JSON.stringify(router.spec) === '{}'
}
