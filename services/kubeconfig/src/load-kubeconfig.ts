import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, resolve } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { ServeError } from '@tutti/errors'
import { parse } from 'yaml'

/** The kubeconfig files to read, and the context to take from them. */
export interface KubeConfigChoice {
  /** Paths of the files, merged as kubectl does: the first entry of each name counts, and the first current context. */
  readonly files: readonly string[]
  /** Name of a context; default: the current one. */
  readonly context?: string | undefined
}

/** Splits a value of KUBECONFIG into the paths of its files. */
export function filesOf(kubeconfig: string): readonly string[] {
  return kubeconfig.split(delimiter).filter((file) => file !== '')
}

/**
 * Reads kubeconfig files. Missing files are left out, unless there is only one.
 *
 * @throws ServeError SETTING_INVALID if a file cannot be read, if the context, its cluster or its user is missing, or if it asks
 * for a proxy or for impersonation, which are not offered.
 */
export function loadKubeConfig({ files, context }: KubeConfigChoice): KubeConfig {
  const read = files.flatMap((file) => readFile(file, files.length > 1))
  const config = new KubeConfig()
  config.loadFromOptions({
    clusters: firstOfName(read.flatMap((one) => one.clusters)),
    users: firstOfName(read.flatMap((one) => one.users)),
    contexts: firstOfName(read.flatMap((one) => one.contexts)),
    currentContext: context ?? read.map((one) => one.currentContext).find(Boolean) ?? '',
  })
  check(config, files.join(':'), context === undefined ? 'current-context' : 'context')
  // The library takes a server without TLS, such as that of `kubectl proxy`, only so.
  for (const cluster of config.clusters) {
    if (cluster.server.startsWith('http://')) Object.assign(cluster, { skipTLSVerify: true })
  }
  return config
}

function firstOfName<T extends { readonly name: string }>(entries: readonly T[]): T[] {
  return entries.filter(({ name }, i) => entries.findIndex((other) => other.name === name) === i)
}

function check(config: KubeConfig, where: string, what: string): void {
  const name = config.getCurrentContext()
  const context = config.getContextObject(name)
  const cluster = config.getCurrentCluster()
  const user = config.getCurrentUser()
  if (context === null || cluster === null) {
    throw refusal(`${where}: ${what} is "${name}", want a context with a cluster`)
  }
  if (context.user && user === null) {
    throw refusal(`${where}: context "${name}" has the user "${context.user}", which is missing`)
  }
  const { protocol, hostname } = URL.parse(cluster.server) ?? {}
  if (!/^https?:$/.test(protocol ?? '') || !hostname) {
    const got = `the server "${cluster.server}"`
    throw refusal(`${where}: cluster "${cluster.name}" has ${got}, want https://HOST:PORT`)
  }
  if (cluster.proxyUrl !== undefined) {
    throw refusal(`${where}: cluster "${cluster.name}" has a proxy-url, which is not offered`)
  }
  // The library has null for what an entry leaves out.
  if (user?.impersonateUser) {
    throw refusal(`${where}: the user of the context has "as", which is not offered`)
  }
}

function readFile(file: string, mayBeMissing: boolean): KubeConfig | [] {
  if (mayBeMissing && !existsSync(file)) return []
  try {
    const content: unknown = parse(readFileSync(file, 'utf8'))
    // An empty one, /dev/null say, has no value at all.
    if (Object(content) !== content) throw new Error('it has no clusters, contexts and users')
    const folder = dirname(resolve(file))
    const config = new KubeConfig()
    config.loadFromString(JSON.stringify(content))
    config.makePathsAbsolute(folder)
    for (const user of config.users) completeUser(user, rawUser(content, user.name), folder)
    return config
  } catch (error) {
    throw refusal(`${file} cannot be read as a kubeconfig: ${Object(error).message}`, error)
  }
}

type User = KubeConfig['users'][number]

function rawUser(content: unknown, name: string): object {
  const users: readonly { name: string; user?: object }[] = Object(content).users
  return users.find((entry) => entry.name === name)?.user ?? {}
}

/** Adds what kubectl knows of a user and the library does not. */
function completeUser(user: User, raw: object, folder: string): void {
  const tokenFile: unknown = Reflect.get(raw, 'tokenFile')
  if (typeof tokenFile === 'string' && tokenFile !== '') {
    const config = { tokenFile: resolve(folder, tokenFile) }
    Object.assign(user, { token: undefined, authProvider: { name: 'tokenFile', config } })
  }
  const { exec } = user
  if (!exec) return
  const { command } = exec
  // A bare name is looked for in PATH.
  if (command.includes('/') && !isAbsolute(command)) exec.command = resolve(folder, command)
  const { apiVersion } = exec
  const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } }
  exec.env = [...(exec.env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }]
}

function refusal(message: string, cause?: unknown): ServeError {
  return new ServeError('SETTING_INVALID', message, { details: { field: 'KUBECONFIG' }, cause })
}
