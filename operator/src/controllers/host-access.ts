import type { PodTemplate } from '@tutti/api'
import type { PodSpec } from '@tutti/kube'
import { overlayPodSpec } from '../resources/pod-overlay.ts'
import { cutText } from '../runtime/conditions.ts'

/** A field of a `podTemplate` that gives its pods access to their node. */
export interface HostAccess {
  /** Path of the field, e.g. `podTemplate.spec.containers[0].ports[0].hostPort`. */
  readonly place: string
  /** Value of the field as JSON, cut to 100 characters. */
  readonly got: string
  readonly want: string
}

interface Rule {
  /** Below `podTemplate`; `*` stands for every element of a list. */
  readonly path: readonly string[]
  readonly want: string
  readonly allows: (value: unknown) => boolean
}

const LONGEST_VALUE = 100

const isEmpty = (value: unknown): boolean =>
  value === '' || value === false || value === 0 || (Array.isArray(value) && value.length === 0)
const isConfined = (value: unknown): boolean => value !== 'Unconfined'

/** Rules of a security context, which pods and containers have. */
const CONTEXT = [
  rule('windowsOptions.hostProcess', 'false'),
  rule('seccompProfile.type', 'RuntimeDefault or Localhost', isConfined),
  rule('appArmorProfile.type', 'RuntimeDefault or Localhost', isConfined),
  rule('seLinuxOptions.user', 'no user'),
  rule('seLinuxOptions.role', 'no role'),
  rule('seLinuxOptions.type', 'one of containers, e.g. container_t', (type) =>
    /^(container(_init|_kvm|_engine)?_t)?$/.test(String(type)),
  ),
].map((one) => within('securityContext', one))

/** Calls of the kubelet, which it makes from the node, not from the pod. */
const CALLS = [
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle.postStart',
  'lifecycle.preStop',
].flatMap((call) =>
  ['httpGet', 'tcpSocket'].map((kind) => rule(`${call}.${kind}.host`, "no host: the pod's own")),
)

const CONTAINER = [
  ...CONTEXT,
  rule('securityContext.privileged', 'false'),
  rule('securityContext.procMount', 'Default', (value) => value === 'Default'),
  // The one that Pod Security `restricted` allows: ports below 1024 are the pod's own.
  rule('securityContext.capabilities.add.*', 'NET_BIND_SERVICE, or none', (name) =>
    /^(CAP_)?NET_BIND_SERVICE$/.test(String(name)),
  ),
  rule('ports.*.hostPort', 'no port of the node'),
  ...CALLS,
]

/** Checks of the pod's spec, as in Pod Security `baseline`, and that no capabilities are added. */
const SPEC = [
  ...['hostNetwork', 'hostPID', 'hostIPC'].map((field) => rule(field, 'false')),
  ...CONTEXT,
  rule('volumes.*.hostPath', 'another kind of volume', () => false),
  ...['containers', 'initContainers', 'ephemeralContainers'].flatMap((list) =>
    CONTAINER.map((one) => within(`${list}.*`, one)),
  ),
].map((one) => within('spec', one))

/** Pattern of annotations that set an AppArmor profile, from before Kubernetes had a field for it. */
const APP_ARMOR = /^container\.apparmor\.security\.beta\.kubernetes\.io\//

/** Makes the text for a field that gives access to a node, where the installation forbids that. */
export function toHostAccessText({ place, got, want }: HostAccess): string {
  return `${place}: got ${got}, want ${want}; access to nodes takes the operator's flag --allow-host-access (step.allowHostAccess of the chart)`
}

/**
 * Finds the first field of a pod template that gives access to a node; undefined if none does. Values may be of any type.
 *
 * @param root - path of the template in its resource.
 */
export function findHostAccess(
  podTemplate: PodTemplate | undefined,
  root = 'podTemplate',
): HostAccess | undefined {
  const toAccess = (place: string, value: unknown, want: string): HostAccess => ({
    place: `${root}${place}`,
    got: cutText(JSON.stringify(value), LONGEST_VALUE),
    want,
  })
  for (const { path, want, allows } of SPEC) {
    for (const [place, value] of find(podTemplate, path)) {
      if (!allows(value)) return toAccess(place, value, want)
    }
  }
  if (hasNoProfile(podTemplate?.spec)) {
    return toAccess(`${PROFILE}.type`, null, 'RuntimeDefault or Localhost')
  }
  const annotations = Object.entries(podTemplate?.metadata?.annotations ?? {})
  const found = annotations.find(([key, value]) => APP_ARMOR.test(key) && value === 'unconfined')
  if (found === undefined) return undefined
  return toAccess(`.metadata.annotations[${found[0]}]`, found[1], 'runtime/default')
}

const PROFILE = '.spec.securityContext.seccompProfile'
const CONFINED: PodSpec = {
  containers: [],
  securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
}

/** True if `$patch` leaves the pods without the seccomp profile that they have from us, which is `Unconfined`. */
function hasNoProfile(spec: Readonly<Record<string, unknown>> | undefined): boolean {
  const { securityContext }: { securityContext?: unknown } = overlayPodSpec(CONFINED, spec)
  return Object(Object(securityContext).seccompProfile).type === undefined
}

/** Finds every value at a path, with its place. */
function* find(
  node: unknown,
  [name, ...rest]: readonly string[],
  place = '',
): Generator<readonly [place: string, value: unknown]> {
  if (node === undefined || node === null) return
  if (name === undefined) {
    yield [place, node]
  } else if (name !== '*') {
    const { [name]: child }: Readonly<Record<string, unknown>> = Object(node)
    yield* find(child, rest, `${place}.${name}`)
  } else if (Array.isArray(node)) {
    for (const [index, child] of node.entries()) yield* find(child, rest, `${place}[${index}]`)
  }
}

function rule(path: string, want: string, allows: Rule['allows'] = isEmpty): Rule {
  return { path: path.split('.'), want, allows }
}

function within(path: string, one: Rule): Rule {
  return { ...one, path: [...path.split('.'), ...one.path] }
}
