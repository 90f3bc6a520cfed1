import type { RequestOptions } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { type Clock, systemClock } from '@tutti/chassis'
import type { ClusterAccess, Credentials } from '@tutti/kube'
import { type KubeConfigChoice, loadKubeConfig } from './load-kubeconfig.ts'

/** Files, tokens and exec plugins are asked again after this time. */
const REREAD_MS = 60_000
/** A plugin that asks a person takes long; one that hangs must not hold up all requests for ever. */
const PLUGIN_MS = 60_000

export interface KubeConfigOptions extends KubeConfigChoice {
  readonly clock?: Clock
  /** Milliseconds that an exec plugin may take; one minute if absent. */
  readonly pluginMs?: number
}

export interface OpenedKubeConfig {
  readonly access: ClusterAccess
  /** Name of the context. */
  readonly context: string
  /** Namespace of the context; absent if it names none. */
  readonly namespace: string | undefined
}

/**
 * Opens the API server of a context, with the certificates, tokens, exec plugins and passwords of its user. Credentials are read
 * anew after a minute, and after `refresh`.
 *
 * @throws ServeError SETTING_INVALID as `loadKubeConfig` does.
 */
export function openKubeConfig(o: KubeConfigOptions): OpenedKubeConfig {
  const { clock = systemClock, pluginMs = PLUGIN_MS } = o
  let config = loadKubeConfig(o)
  const context = config.getCurrentContext()
  const namespace = config.getContextObject(context)?.namespace
  const cluster = config.getCurrentCluster()
  let read: { readonly credentials: Credentials; readonly at: number } | undefined
  let asking: Promise<Credentials> | undefined
  let isRefused = false

  const ask = async (): Promise<Credentials> => {
    // It reads token files when it is loaded. A plugin it keeps asking by itself, and to load it anew would ask each time; but its
    // token is kept inside for as long as the plugin said, which a refusal has proved wrong.
    const { exec } = config.getCurrentUser() ?? {}
    if (isRefused || (read !== undefined && !exec)) config = loadKubeConfig(o)
    isRefused = false
    const options: RequestOptions = { headers: {} }
    const applied = config.applyToHTTPSOptions(options)
    await (exec ? fromPlugin(applied, pluginMs, exec.command) : applied)
    read = { credentials: toCredentials(options), at: clock.now() }
    return read.credentials
  }

  const access: ClusterAccess = {
    server: new URL(cluster?.server ?? ''),
    serverName: cluster?.tlsServerName,
    isServerUnverified: cluster?.skipTLSVerify,
    credentials: async () => {
      if (!isRefused && read !== undefined && clock.now() - read.at < REREAD_MS) {
        return read.credentials
      }
      // Only one of all requests that begin meanwhile asks: a plugin may open a window.
      asking ??= ask().finally(() => {
        asking = undefined
      })
      return await asking
    },
    refresh: () => {
      isRefused = true
    },
  }
  return { access, context, namespace }
}

async function fromPlugin(work: Promise<void>, ms: number, plugin: string): Promise<void> {
  const done = new AbortController()
  const limit = async (): Promise<never> => {
    await delay(ms, undefined, { signal: done.signal })
    throw new Error(`no answer within ${ms / 1000} s`)
  }
  try {
    await Promise.race([work, limit()])
  } catch (cause) {
    const { message } = Object(cause)
    throw new Error(`the plugin ${plugin} of the kubeconfig failed: ${message}`, { cause })
  } finally {
    done.abort()
  }
}

function toCredentials(o: RequestOptions): Credentials {
  const [ca, cert, key] = [o.ca, o.cert, o.key].map(toText)
  return { authorization: authorizationOf(o), ca, cert, key }
}

function authorizationOf({ headers, auth }: RequestOptions): string | undefined {
  if (typeof auth === 'string') return `Basic ${Buffer.from(auth).toString('base64')}`
  const value: unknown = headers === undefined ? undefined : Reflect.get(headers, 'Authorization')
  // A token's file ends with a new line.
  return typeof value === 'string' ? value.trim() : undefined
}

function toText(pem: unknown): string | undefined {
  if (typeof pem === 'string') return pem
  return Buffer.isBuffer(pem) ? pem.toString('utf8') : undefined
}
