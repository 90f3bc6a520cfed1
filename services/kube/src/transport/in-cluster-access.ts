import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, systemClock } from '@tutti/chassis'
import type { ClusterAccess, Credentials } from './cluster-access.ts'

const SERVICE_ACCOUNT_DIR = '/var/run/secrets/kubernetes.io/serviceaccount'
/** The kubelet renews a token long before it ends; so often its file is read. */
const REREAD_MS = 10_000

/** Variables that a pod finds in its environment. */
export interface InClusterEnv {
  readonly KUBERNETES_SERVICE_HOST?: string | undefined
  readonly KUBERNETES_SERVICE_PORT?: string | undefined
  /** Folder of `token` and `ca.crt`; default `/var/run/secrets/kubernetes.io/serviceaccount`. */
  readonly TUTTI_SERVICE_ACCOUNT_DIR?: string | undefined
}

/**
 * Gives a pod access to its API server, as the pod's service account. Token and authority are read anew every ten seconds, and
 * when the server refuses them. While the files cannot be read, the last credentials count.
 *
 * @throws Error if the environment names no API server, outside of a pod.
 */
export function inClusterAccess(env: InClusterEnv, clock: Clock = systemClock): ClusterAccess {
  const folder = env.TUTTI_SERVICE_ACCOUNT_DIR || SERVICE_ACCOUNT_DIR
  let read: { readonly credentials: Credentials; readonly atMs: number } | undefined
  let isStale = true
  return {
    server: serverOf(env),
    credentials: async () => {
      if (read !== undefined && !isStale && clock.now() - read.atMs < REREAD_MS) {
        return read.credentials
      }
      // Before the reading: a refusal meanwhile makes what is read stale again.
      isStale = false
      try {
        read = { credentials: await readCredentials(folder), atMs: clock.now() }
      } catch (error) {
        if (read === undefined) throw error
      }
      return read.credentials
    },
    refresh: () => {
      isStale = true
    },
  }
}

function serverOf(env: InClusterEnv): URL {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env
  if (!host || !port) {
    throw new Error(
      `KUBERNETES_SERVICE_HOST is "${host ?? ''}" and KUBERNETES_SERVICE_PORT is "${port ?? ''}"; want both, as in a pod`,
    )
  }
  return new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`)
}

async function readCredentials(folder: string): Promise<Credentials> {
  const [token, ca] = await Promise.all([
    readFile(join(folder, 'token'), 'utf8'),
    readFile(join(folder, 'ca.crt'), 'utf8'),
  ])
  if (token.trim() === '') throw new Error(`${join(folder, 'token')} is empty, want a token`)
  return { authorization: `Bearer ${token.trim()}`, ca }
}
