import { ROUTER_NAME, RouterSpec } from '@tutti/ensemble'
import {
  type Client,
  CONFIG_MAP,
  type ConfigMap,
  DEPLOYMENT,
  type Deployment,
  type Stored,
  unlessNotFound,
} from '@tutti/kube'
import { ROUTER, type RouterObject } from '../../api/kinds.ts'
import { toPlain } from '../../resources/plain.ts'
import { ROUTER_IDENTITY, ROUTER_NAMES } from '../../resources/router-names.ts'
import { controllerOf, FIELD_MANAGER, MANAGED_BY } from '../../runtime/children.ts'
import { parseSpec } from '../read-spec.ts'
import { isUntouched } from './untouched.ts'

/*
 * The release before Router had its settings in a labelled ConfigMap. A Router that the operator makes gets them once, if that
 * release's router is there; goes with the first release after 0.1.
 */

const LABEL = 'tutti.dev/router-settings'

/** On a Router whose spec is still to get the settings of the ConfigMap that it names. Nothing is made for it before that. */
export const SETTINGS_FROM = 'tutti.dev/settings-from'

type Signalled = { readonly signal: AbortSignal }

/**
 * The annotations of a Router that is to be made. Where pods do not run with these settings already, a ConfigMap has no effect:
 * the right to write one is not the right to choose nodes and clients of a router.
 *
 * @throws KubeError
 */
export async function findEarlierSettings(
  client: Pick<Client, 'get' | 'list'>,
  namespace: string,
  o: Signalled,
): Promise<Readonly<Record<string, string>>> {
  const key = { namespace, name: ROUTER_NAMES.router }
  const deployment = await unlessNotFound(client.get(DEPLOYMENT, key, o))
  if (deployment === undefined || !isOfEarlierRelease(deployment)) return {}
  const [first] = await listSettings(client, namespace, o)
  return first === undefined ? {} : { [SETTINGS_FROM]: first.metadata.name }
}

/**
 * Writes the settings into the spec of a Router that waits for them, and takes the annotation away. Such a Router is a user's from
 * then on: it stays when the last Model goes. One that is a user's already, or has a spec, only loses the annotation.
 *
 * @returns the ConfigMap whose settings are in the spec now, if there is one; `problem`: in one line why they cannot be taken over.
 * @throws KubeError
 */
export async function takeOverSettings(
  client: Pick<Client, 'list' | 'mergePatch'>,
  router: Stored<RouterObject>,
  { signal }: Signalled,
): Promise<{ readonly from?: string; readonly problem?: string }> {
  const { namespace = '', resourceVersion } = router.metadata
  const key = { namespace, name: ROUTER_NAME }
  const options = { fieldManager: FIELD_MANAGER, signal }
  const metadata = { resourceVersion, annotations: { [SETTINGS_FROM]: null } }
  const [first, second] = isUntouched(router)
    ? await listSettings(client, namespace, { signal })
    : []
  if (first === undefined) {
    await client.mergePatch(ROUTER, key, { ...options, patch: { metadata } })
    return {}
  }
  const { name } = first.metadata
  if (second !== undefined) {
    return {
      problem: `ConfigMap "${name}" and "${second.metadata.name}" both have the label ${LABEL}, want one of them; delete the other`,
    }
  }
  const given = toSpec(first.data ?? {})
  const { spec, problem } = parseSpec(RouterSpec, given)
  if (problem !== undefined) {
    return {
      problem: `ConfigMap "${name}", as the spec of this Router: ${problem}; correct or delete the ConfigMap`,
    }
  }
  const patch = { metadata: { ...metadata, labels: UNMANAGED }, spec: toPlain(spec) }
  await client.mergePatch(ROUTER, key, { ...options, patch })
  return { from: name }
}

const UNMANAGED = Object.fromEntries(Object.keys(MANAGED_BY).map((label) => [label, null]))

/** That release's objects have no owner. */
function isOfEarlierRelease(deployment: Deployment): boolean {
  const { labels = {} } = deployment.metadata
  const isRouter = Object.entries(ROUTER_IDENTITY).every(([key, value]) => labels[key] === value)
  return isRouter && controllerOf(deployment) === undefined
}

/** By name. */
async function listSettings(
  client: Pick<Client, 'list'>,
  namespace: string,
  { signal }: Signalled,
): Promise<readonly Stored<ConfigMap>[]> {
  const labelSelector = `${LABEL}=true`
  const { items } = await client.list(CONFIG_MAP, { namespace, labelSelector, signal })
  return items.toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
}

/** What a text of the ConfigMap is as a field; one that cannot be read stays, for the schema to refuse. */
function toField(key: string, text: string): unknown {
  switch (key) {
    case 'image':
      return text
    case 'clientNamespaces':
      return [...new Set(text.split(','))]
    default:
      try {
        return JSON.parse(text)
      } catch {
        return text
      }
  }
}

/** Pure. Exported for its test. */
export function toSpec({
  drainTimeout,
  ...data
}: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  const fields = Object.entries(data).map(([key, text]) => [key, toField(key, text)])
  return {
    ...Object.fromEntries(fields),
    ...(drainTimeout !== undefined && { timeouts: { drain: drainTimeout } }),
  }
}
