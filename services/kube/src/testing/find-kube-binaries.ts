import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { env } from 'node:process'

/** Programs of Kubernetes that a test may need. */
export type KubeProgram =
  | 'etcd'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'kubectl'
  | 'helm'

const ALWAYS: readonly KubeProgram[] = ['etcd', 'kube-apiserver']

/**
 * Finds the folder of Kubernetes' programs: TUTTI_KUBE_BIN, which the test command sets, else KUBEBUILDER_ASSETS; undefined if
 * neither is set.
 */
export function findKubeBinaries(): string | undefined {
  return env['TUTTI_KUBE_BIN'] || env['KUBEBUILDER_ASSETS'] || undefined
}

/**
 * Tells why tests that need a real API server cannot run, for tap's `skip`; false if they can.
 *
 * @param more - programs that the test needs beside etcd and kube-apiserver.
 */
export function withoutKube(...more: readonly KubeProgram[]): string | false {
  const folder = findKubeBinaries()
  if (folder === undefined) {
    return env['TUTTI_KUBE_MISSING'] ?? 'neither TUTTI_KUBE_BIN nor KUBEBUILDER_ASSETS is set'
  }
  const lacking = [...ALWAYS, ...more].filter((program) => !existsSync(join(folder, program)))
  return lacking.length === 0 ? false : `${folder} lacks ${lacking.join(', ')}`
}
