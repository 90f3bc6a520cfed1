import { inOurWords, RouterSpec, toProblemText, toSchemaProblems } from '@tutti/ensemble'
import type { RouterObject } from '../../api/kinds.ts'
import type { RouterDefaults } from '../../resources/router-deployment.ts'

/** A spec that may be served, or in one line why it may not. */
export type ReadRouter =
  | { readonly spec: RouterSpec; readonly problem?: undefined }
  | { readonly spec?: undefined; readonly problem: string }

/** Reads a spec as it was stored: an older or newer schema may have let it in. Pure. */
export function readRouter(
  object: Pick<RouterObject, 'spec'>,
  { allowsImage }: Pick<RouterDefaults, 'allowsImage'>,
): ReadRouter {
  const { success, data, error } = RouterSpec.safeParse(object.spec, { error: inOurWords })
  if (!success) return { problem: toProblemText(toSchemaProblems(RouterSpec, error)) }
  if (data.image !== undefined && !allowsImage) {
    return {
      problem: `image: got '${data.image}', want none; remove spec.image, or set router.allowImage of the chart`,
    }
  }
  return { spec: data }
}
