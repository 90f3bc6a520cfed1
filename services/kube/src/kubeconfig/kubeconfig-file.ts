import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, resolve } from 'node:path'
import { ServeError } from '@tutti/errors'
import { parse } from 'yaml'
import { z } from 'zod'

const Cluster = z.object({
  server: z.string(),
  'certificate-authority': z.string().optional(),
  'certificate-authority-data': z.string().optional(),
  'insecure-skip-tls-verify': z.boolean().optional(),
  'tls-server-name': z.string().optional(),
  'proxy-url': z.string().optional(),
})
export type Cluster = z.infer<typeof Cluster>

/** A program that gives credentials, with the fields of client.authentication.k8s.io. */
const Exec = z.object({
  apiVersion: z.string(),
  command: z.string(),
  args: z.array(z.string()).nullish(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
  interactiveMode: z.enum(['Never', 'IfAvailable', 'Always']).optional(),
  provideClusterInfo: z.boolean().optional(),
})
export type Exec = z.infer<typeof Exec>

const User = z.object({
  token: z.string().optional(),
  tokenFile: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  'client-certificate': z.string().optional(),
  'client-certificate-data': z.string().optional(),
  'client-key': z.string().optional(),
  'client-key-data': z.string().optional(),
  exec: Exec.optional(),
  as: z.string().optional(),
  'auth-provider': z.unknown().optional(),
})
export type User = z.infer<typeof User>

const Context = z.object({
  cluster: z.string(),
  user: z.string().default(''),
  namespace: z.string().optional(),
})

/** What a file leaves out may be null in it. */
const KubeConfigFile = z.object({
  'current-context': z.string().nullish(),
  clusters: z.array(z.object({ name: z.string(), cluster: Cluster })).nullish(),
  users: z.array(z.object({ name: z.string(), user: User.nullish() })).nullish(),
  contexts: z.array(z.object({ name: z.string(), context: Context })).nullish(),
})
type KubeConfigFile = z.infer<typeof KubeConfigFile>

/** A context of a kubeconfig, with what it names. Paths are absolute, and so is the path of a plugin that has one. */
export interface KubeContext {
  readonly name: string
  readonly cluster: Cluster & { readonly name: string }
  readonly user: User
  /** Absent if the context names none. */
  readonly namespace: string | undefined
}

/**
 * Reads kubeconfig files and merges them as kubectl does: of entries of one name the first counts, and of the current context, too.
 *
 * @param files - those that are missing are left out, unless it is the only one.
 * @param context - its name; absent for the current one.
 * @throws ServeError SETTING_INVALID if a file cannot be read, or the context or what it names is missing or asks for something
 *   that is not offered.
 */
export function readKubeContext(files: readonly string[], context?: string): KubeContext {
  const read = files.flatMap((file) => readFile(file, files.length > 1))
  const where = files.join(':')
  const name = context ?? read.map((one) => one['current-context']).find(Boolean) ?? ''
  const found = firstNamed(read, 'contexts', name)?.context
  const cluster = found && firstNamed(read, 'clusters', found.cluster)?.cluster
  if (found === undefined || cluster === undefined) {
    const what = context === undefined ? 'current-context' : 'context'
    throw refusal(`${where}: ${what} is "${name}", want a context with a cluster`)
  }
  const user = firstNamed(read, 'users', found.user)?.user ?? {}
  checkOffered(where, { name: found.cluster, ...cluster }, user)
  const { namespace } = found
  return { name, cluster: { name: found.cluster, ...cluster }, user, namespace }
}

function firstNamed<K extends 'contexts' | 'clusters' | 'users'>(
  files: readonly KubeConfigFile[],
  kind: K,
  name: string,
): NonNullable<KubeConfigFile[K]>[number] | undefined {
  for (const file of files) {
    const entries: readonly NonNullable<KubeConfigFile[K]>[number][] = file[kind] ?? []
    const found = entries.find((entry) => entry.name === name)
    if (found !== undefined) return found
  }
  return undefined
}

function readFile(file: string, mayBeMissing: boolean): KubeConfigFile | [] {
  let content: unknown
  try {
    content = parse(readFileSync(file, 'utf8'))
  } catch (error) {
    if (mayBeMissing && error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      return []
    }
    throw refusal(`${file} cannot be read as a kubeconfig`, error)
  }
  const parsed = KubeConfigFile.safeParse(content)
  if (!parsed.success) {
    throw refusal(`${file} cannot be read as a kubeconfig: ${z.prettifyError(parsed.error)}`)
  }
  return withAbsolutePaths(parsed.data, dirname(resolve(file)))
}

/** Paths in a kubeconfig are relative to its folder. */
function withAbsolutePaths(config: KubeConfigFile, folder: string): KubeConfigFile {
  const at = (path: string | undefined) => (path ? resolve(folder, path) : undefined)
  return {
    ...config,
    clusters: config.clusters?.map(({ name, cluster }) => ({
      name,
      cluster: { ...cluster, 'certificate-authority': at(cluster['certificate-authority']) },
    })),
    users: config.users?.map(({ name, user }) => ({
      name,
      user: user && {
        ...user,
        tokenFile: at(user.tokenFile),
        'client-certificate': at(user['client-certificate']),
        'client-key': at(user['client-key']),
        exec: user.exec && { ...user.exec, command: commandAt(user.exec.command, folder) },
      },
    })),
  }
}

/** A bare name is looked for in PATH. */
function commandAt(command: string, folder: string): string {
  return command.includes('/') && !isAbsolute(command) ? resolve(folder, command) : command
}

function checkOffered(where: string, cluster: KubeContext['cluster'], user: User): void {
  if (cluster['proxy-url'] !== undefined) {
    throw refusal(`${where}: cluster "${cluster.name}" has a proxy-url, which is not offered`)
  }
  for (const field of ['as', 'auth-provider'] as const) {
    if (user[field] !== undefined) {
      throw refusal(`${where}: the user of the context has "${field}", which is not offered`)
    }
  }
}

function refusal(message: string, cause?: unknown): ServeError {
  return new ServeError('SETTING_INVALID', message, { details: { field: 'KUBECONFIG' }, cause })
}
