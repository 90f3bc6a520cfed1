import type { RequestOptions } from 'node:https'
import { KubeConfig } from '@kubernetes/client-node'
import { type Clock, systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { ClusterAccess, Credentials } from '@tutti/kube'

/** Files, tokens and exec plugins are asked again after this time. */
const REREAD_MS = 60_000

export interface KubeConfigOptions {
  /** A kubeconfig file; the current context in it counts. */
  readonly file: string
  readonly clock?: Clock
}

/**
 * The API server of a kubeconfig's current context, with its certificates, tokens, exec plugins and passwords. A token's file
 * is named `token-file`: client-node does not know `tokenFile`.
 *
 * @throws ServeError SETTING_INVALID if the file cannot be read, has no current context, or asks for what is not offered.
 */
export function kubeConfigAccess({ file, clock = systemClock }: KubeConfigOptions): ClusterAccess {
  let config = load(file)
  let read: { readonly credentials: Credentials; readonly at: number } | undefined
  let isRefused = false
  const { server, skipTLSVerify, tlsServerName } = clusterOf(config, file)
  return {
    server: new URL(server),
    serverName: tlsServerName,
    isServerUnverified: skipTLSVerify,
    credentials: async () => {
      if (!isRefused && read !== undefined && clock.now() - read.at < REREAD_MS) {
        return read.credentials
      }
      // It reads token files when it is loaded. A plugin it keeps asking by itself, and to load it anew would ask each time; but its
      // token is kept inside for as long as the plugin said, which a refusal has proved wrong.
      const isRead = read !== undefined && config.getCurrentUser()?.exec === undefined
      if (isRefused || isRead) config = load(file)
      isRefused = false
      const options: RequestOptions = {}
      await config.applyToHTTPSOptions(options)
      read = { credentials: toCredentials(options), at: clock.now() }
      return read.credentials
    },
    refresh: () => {
      isRefused = true
    },
  }
}

function load(file: string): KubeConfig {
  const config = new KubeConfig()
  try {
    config.loadFromFile(file)
  } catch (error) {
    throw refusal(`${file} cannot be read as a kubeconfig`, error)
  }
  return config
}

function clusterOf(config: KubeConfig, file: string) {
  const cluster = config.getCurrentCluster()
  if (cluster === null) {
    throw refusal(
      `${file}: current-context is "${config.currentContext}", want a context with a cluster`,
    )
  }
  if (cluster.proxyUrl !== undefined) {
    throw refusal(`${file}: cluster "${cluster.name}" has a proxy-url, which is not offered`)
  }
  if (config.getCurrentUser()?.impersonateUser !== undefined) {
    throw refusal(`${file}: the user of the current context has "as", which is not offered`)
  }
  return cluster
}

function toCredentials(o: RequestOptions): Credentials {
  const [ca, cert, key] = [o.ca, o.cert, o.key].map(toText)
  return { authorization: authorizationOf(o), ca, cert, key }
}

function authorizationOf({ headers, auth }: RequestOptions): string | undefined {
  if (typeof auth === 'string') return `Basic ${Buffer.from(auth).toString('base64')}`
  const value: unknown = headers === undefined ? undefined : Reflect.get(headers, 'Authorization')
  return typeof value === 'string' ? value : undefined
}

function toText(pem: unknown): string | undefined {
  if (typeof pem === 'string') return pem
  return Buffer.isBuffer(pem) ? pem.toString('utf8') : undefined
}

function refusal(message: string, cause?: unknown): ServeError {
  return new ServeError('SETTING_INVALID', message, { details: { field: 'KUBECONFIG' }, cause })
}
