import {
  inOurWords,
  ROUTER_NAME,
  RouterSpec,
  toProblemText,
  toSchemaProblems,
} from '@tutti/ensemble'
import { type Client, CONFIG_MAP, type ConfigMap, type Stored } from '@tutti/kube'
import { ROUTER, type RouterObject } from '../../api/kinds.ts'
import { toPlain } from '../../resources/plain.ts'
import { FIELD_MANAGER } from '../../runtime/children.ts'

/*
 * The release before Router had its settings in a labelled ConfigMap. A Router that the operator makes gets them once; goes with
 * the first release after 0.1.
 */

const LABEL = 'tutti.dev/router-settings'

/** On a Router whose spec is still to get the settings of the ConfigMap that it names. Nothing is made for it before that. */
export const SETTINGS_FROM = 'tutti.dev/settings-from'

type Signalled = { readonly signal: AbortSignal }

/** The annotations of a Router that is to be made. @throws KubeError */
export async function findEarlierSettings(
  client: Pick<Client, 'list'>,
  namespace: string,
  o: Signalled,
): Promise<Readonly<Record<string, string>>> {
  const [first] = await listSettings(client, namespace, o)
  return first === undefined ? {} : { [SETTINGS_FROM]: first.metadata.name }
}

/**
 * Writes the settings into the spec of a Router that waits for them, and takes the annotation away.
 *
 * @returns in one line why it cannot; undefined if it did, or if there is no such ConfigMap any more.
 * @throws KubeError
 */
export async function takeOverSettings(
  client: Pick<Client, 'list' | 'mergePatch'>,
  { metadata: { namespace = '', resourceVersion } }: Stored<RouterObject>,
  { signal }: Signalled,
): Promise<string | undefined> {
  const [first, second] = await listSettings(client, namespace, { signal })
  const name = `ConfigMap "${first?.metadata.name}"`
  if (second !== undefined) {
    return `${name} and "${second.metadata.name}" both have the label ${LABEL}, want one of them; delete the other`
  }
  const given = toSpec(first?.data ?? {})
  const { success, data: spec, error } = RouterSpec.safeParse(given, { error: inOurWords })
  if (!success) {
    const problem = toProblemText(toSchemaProblems(RouterSpec, error))
    return `${name}, as the spec of this Router: ${problem}; correct or delete the ConfigMap`
  }
  const patch = {
    metadata: { resourceVersion, annotations: { [SETTINGS_FROM]: null } },
    spec: toPlain(spec),
  }
  const key = { namespace, name: ROUTER_NAME }
  await client.mergePatch(ROUTER, key, { patch, fieldManager: FIELD_MANAGER, signal })
  return undefined
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
