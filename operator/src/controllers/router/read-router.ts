import { RouterSpec } from '@tutti/api'
import type { RouterObject } from '../../api/kinds.ts'
import type { RouterDefaults } from '../../resources/router-deployment.ts'
import { type StepTransport, transportOf } from '../../resources/step-settings.ts'
import { findHostAccess, toHostAccessText } from '../host-access.ts'
import { parseSpec, type ReadSpec } from '../read-spec.ts'

/**
 * Parses the spec of a Router. It also gives a problem for what the installation does not allow: an image or containers, which would
 * get the token of the router, and access to nodes. Pure.
 */
export function readRouter(
  object: Pick<RouterObject, 'spec'>,
  o: Pick<RouterDefaults, 'allowsImage' | 'allowsHostAccess'>,
): ReadSpec<RouterSpec> {
  const read = parseSpec(RouterSpec, object.spec)
  const problem = read.spec && findForbidden(read.spec, o)
  return problem === undefined ? read : { problem }
}

/** The fields of a pod spec with which a container of a user's choice would run. */
const CONTAINERS = ['containers', 'initContainers', 'ephemeralContainers'] as const

function findForbidden(
  { image, podTemplate, builtins }: RouterSpec,
  o: Pick<RouterDefaults, 'allowsImage' | 'allowsHostAccess'>,
): string | undefined {
  if (image !== undefined && !o.allowsImage) return forbidImage('image', `'${image}'`)
  for (const [place, template] of [
    ['podTemplate', podTemplate],
    ['builtins.podTemplate', builtins?.podTemplate],
  ] as const) {
    const list = CONTAINERS.find((field) => template?.spec?.[field] !== undefined)
    if (list !== undefined && !o.allowsImage)
      return forbidImage(`${place}.spec.${list}`, 'containers')
    const access = o.allowsHostAccess ? undefined : findHostAccess(template, place)
    if (access !== undefined) return toHostAccessText(access)
  }
  return undefined
}

function forbidImage(place: string, got: string): string {
  return `${place}: got ${got}, want none; remove spec.${place}, or set router.allowImage of the chart`
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
