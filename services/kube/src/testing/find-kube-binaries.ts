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

/** The folder that TUTTI_KUBE_BIN names, which the test command sets, else KUBEBUILDER_ASSETS; undefined if neither is set. */
export function findKubeBinaries(): string | undefined {
  return env['TUTTI_KUBE_BIN'] || env['KUBEBUILDER_ASSETS'] || undefined
}

/**
 * For tap's `skip`: why tests that need a real API server cannot run, or false if they can.
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
