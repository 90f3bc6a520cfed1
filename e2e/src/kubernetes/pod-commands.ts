import type { PlainObject } from '@tutti/kube/testing'

/** Where a container sees a folder, and where that folder really is. */
export interface PathMapping {
  readonly mountPath: string
  readonly path: string
}

/** What a container's process is started with. */
export interface PodCommand {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** A program of an image, by the name that pods call it. */
export interface Program {
  /** The program and what comes before the container's own arguments. */
  readonly command: readonly string[]
  /** Flags that take the address on which it shall listen; they are given to containers with ports. */
  readonly addressFlags: readonly string[]
}

export interface PodCommandOptions {
  readonly pod: PlainObject
  readonly container: PlainObject
  readonly podIp: string
  readonly programs: Readonly<Record<string, Program>>
  readonly mappings: readonly PathMapping[]
  /** What every container has: PATH, where the API server is. */
  readonly env: Readonly<Record<string, string>>
}

/** The process that stands for a container. @throws Error for what this kubelet cannot do. */
export function toPodCommand(o: PodCommandOptions): PodCommand {
  const { container, programs, mappings, podIp } = o
  const [name, ...before] = container['command'] ?? []
  const program = programs[name]
  if (program === undefined) {
    const known = Object.keys(programs).join(', ')
    throw new Error(`container ${container['name']}: command ${name}, want one of ${known}`)
  }
  const args = [...before, ...(container['args'] ?? [])].map((arg) => mapPaths(arg, mappings))
  const isServing = (container['ports'] ?? []).length > 0
  const addresses = isServing ? program.addressFlags.map((flag) => `${flag}=${podIp}`) : []
  return { command: [...program.command, ...args, ...addresses], env: toEnv(o) }
}

function toEnv({ pod, container, podIp, mappings, env }: PodCommandOptions) {
  const own = (container['env'] ?? []).map((entry: PlainObject): [string, string] => {
    const value = entry['value'] ?? fieldOf(pod, podIp, entry)
    return [entry['name'], mapPaths(value, mappings)]
  })
  const account = mappings.find(({ mountPath }) => mountPath === SERVICE_ACCOUNT)
  return {
    ...env,
    ...(account !== undefined && { TUTTI_SERVICE_ACCOUNT_DIR: account.path }),
    ...Object.fromEntries(own),
  }
}

/** Where every program looks that is not told otherwise. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

function fieldOf(pod: PlainObject, podIp: string, { name, valueFrom }: PlainObject): string {
  const { name: podName, namespace, uid } = pod['metadata']
  const fields: Readonly<Record<string, string>> = {
    'metadata.name': podName,
    'metadata.namespace': namespace,
    'metadata.uid': uid,
    'spec.nodeName': pod['spec'].nodeName,
    'status.podIP': podIp,
  }
  const value = fields[valueFrom?.fieldRef?.fieldPath]
  if (value !== undefined) return value
  throw new Error(`env ${name}: ${JSON.stringify(valueFrom)}, want a fieldRef of the pod`)
}

/** The text with every mount path in it, whole or as a beginning, replaced by the folder that stands for it. */
export function mapPaths(text: string, mappings: readonly PathMapping[]): string {
  if (mappings.length === 0) return text
  const longestFirst = mappings.toSorted((a, b) => b.mountPath.length - a.mountPath.length)
  const paths = longestFirst.map(({ mountPath }) => mountPath.replaceAll('.', '\\.')).join('|')
  // A path begins where no longer one is: `/tmp` is not meant by `/var/tmp`, nor by `/tmpfiles`.
  const found = new RegExp(`(?<![\\w/.-])(?:${paths})(?![\\w.-])`, 'g')
  return text.replace(
    found,
    (path) => mappings.find(({ mountPath }) => mountPath === path)?.path ?? path,
  )
}
