import { RouterSpec } from '@tutti/api'
import type { RouterObject } from '../../api/kinds.ts'
import type { RouterDefaults } from '../../resources/router-deployment.ts'
import { type StepTransport, transportOf } from '../../resources/step-settings.ts'
import { parseSpec, type ReadSpec } from '../read-spec.ts'

/** Parses the spec of a Router. It also gives a problem for `spec.image` if images are not allowed. Pure. */
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

/**
 * Reads the transport to steps from a Router's spec; undefined, which means NATS, without a Router or with an invalid spec. Pure.
 */
export function readTransport(
  router: Pick<RouterObject, 'spec'> | undefined,
): StepTransport | undefined {
  const { spec } = router === undefined ? {} : parseSpec(RouterSpec, router.spec)
  return spec && transportOf(spec)
}
