import { RouterSpec } from '@tutti/ensemble'
import type { RouterObject } from '../../api/kinds.ts'
import type { RouterDefaults } from '../../resources/router-deployment.ts'
import { parseSpec, type ReadSpec } from '../read-spec.ts'

/** A spec that may be served, or in one line why it may not. Pure. */
export function readRouter(
  object: Pick<RouterObject, 'spec'>,
  { allowsImage }: Pick<RouterDefaults, 'allowsImage'>,
): ReadSpec<RouterSpec> {
  const read = parseSpec(RouterSpec, object.spec)
  const { image } = read.spec ?? {}
  if (image === undefined || allowsImage) return read
  return {
    problem: `image: got '${image}', want none; remove spec.image, or set router.allowImage of the chart`,
  }
}
