import { readFile } from 'node:fs/promises'
import { type Clock, systemClock } from '@tutti/chassis'
import type { ClusterAccess, Credentials } from '../transport/cluster-access.ts'
import { askPlugin, type PluginCredential } from './exec-credential.ts'
import { type KubeContext, readKubeContext } from './kubeconfig-file.ts'

/** Files are read again after this time. */
const REREAD_MS = 60_000

export interface KubeConfigOptions {
  /** Kubeconfig files, merged as kubectl merges those of KUBECONFIG. */
  readonly files: readonly string[]
  /** Name of a context; default: the current one. */
  readonly context?: string | undefined
  /** That plugins get. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock?: Clock
}

export interface OpenedKubeConfig {
  readonly access: ClusterAccess
  /** Name of the context. */
  readonly context: string
  /** Of the context; absent if it names none. */
  readonly namespace: string | undefined
}

/**
 * The API server of a context, with the certificates, tokens, plugins and passwords of its user.
 *
 * @throws ServeError SETTING_INVALID if a file cannot be read, has no such context, or asks for what is not offered: a proxy,
 *   impersonation, an auth-provider.
 */
export function openKubeConfig(o: KubeConfigOptions): OpenedKubeConfig {
  const { clock = systemClock } = o
  const context = readKubeContext(o.files, o.context)
  const { cluster } = context
  let read: { readonly credentials: Credentials; readonly untilMs: number } | undefined
  const access: ClusterAccess = {
    server: new URL(cluster.server),
    serverName: cluster['tls-server-name'],
    isServerUnverified: cluster['insecure-skip-tls-verify'],
    credentials: async () => {
      if (read !== undefined && clock.now() < read.untilMs) return read.credentials
      // A file may have been rewritten; the server stays the same.
      const latest = read === undefined ? context : readKubeContext(o.files, o.context)
      const plugin = await askPlugin(latest, o.env)
      const credentials = await toCredentials(latest, plugin)
      read = { credentials, untilMs: plugin?.expiresMs ?? untilOf(latest, clock.now()) }
      return credentials
    },
    refresh: () => {
      if (read !== undefined) read = { ...read, untilMs: 0 }
    },
  }
  return { access, context: context.name, namespace: context.namespace }
}

/** A plugin without a time is asked once. */
function untilOf({ user }: KubeContext, nowMs: number): number {
  return user.exec === undefined ? nowMs + REREAD_MS : Number.POSITIVE_INFINITY
}

async function toCredentials(
  { cluster, user }: KubeContext,
  plugin: PluginCredential | undefined,
): Promise<Credentials> {
  const [ca, cert, key] = await Promise.all([
    readPem(cluster['certificate-authority-data'], cluster['certificate-authority']),
    readPem(user['client-certificate-data'], user['client-certificate']),
    readPem(user['client-key-data'], user['client-key']),
  ])
  const authorization = await authorizationOf(user, plugin)
  return { authorization, ca, cert: plugin?.cert ?? cert, key: plugin?.key ?? key }
}

/** @param data - base64; it goes before the file. */
async function readPem(data = '', file = ''): Promise<string | undefined> {
  if (data !== '') return Buffer.from(data, 'base64').toString('utf8')
  return file === '' ? undefined : await readFile(file, 'utf8')
}

async function authorizationOf(
  { token = '', tokenFile = '', username = '', password = '' }: KubeContext['user'],
  plugin: PluginCredential | undefined,
): Promise<string | undefined> {
  if (plugin?.token !== undefined) return `Bearer ${plugin.token}`
  if (tokenFile !== '') return `Bearer ${(await readFile(tokenFile, 'utf8')).trim()}`
  if (token !== '') return `Bearer ${token}`
  if (username === '') return undefined
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}
