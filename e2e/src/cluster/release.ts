import type { PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { CHART } from '../chart/helm.ts'
import { ROOT, VERSION } from '../serving.ts'
import { deleteNamespace, getObject, runKubeProgram } from './kubectl.ts'

/** The namespace of the release, which is called tutti. */
export const SYSTEM = 'tutti-system'
/** Secrets of the keys of NATS, which stay for a later install. */
export const KEPT = ['tutti-nats-keys', 'tutti-nats-server'].map(
  (name) => `Secret ${SYSTEM}/${name}`,
)
/** A machine that is busy with other things may take long. */
const PATIENCE = '--timeout=5m'

export function helm(...args: readonly string[]): Promise<string> {
  return runKubeProgram('helm', [...args, `--namespace=${SYSTEM}`])
}

const VALUES = `--values=${ROOT}e2e/cluster/values.yaml`

/** Installs or upgrades the release, and waits for it. */
export function install(flags: readonly string[] = []): Promise<string> {
  const command = ['upgrade', '--install', 'tutti', CHART, VALUES, '--create-namespace']
  return helm(...command, ...flags, '--wait', PATIENCE)
}

/** Installs the release as its docs say, out of a registry that speaks HTTP, and waits for it. @param prefix - `HOST:PORT/OWNER`. */
export function installFrom(prefix: string, env: NodeJS.ProcessEnv): Promise<string> {
  const command = ['install', 'tutti', `oci://${prefix}/charts/tutti`, `--version=${VERSION}`]
  // The node has the images under these names.
  const images = ['operator', 'router', 'step'].map((name) => {
    return `--set=${name}.image.repository=tutti/${name}`
  })
  const flags = ['--plain-http', `--namespace=${SYSTEM}`, '--create-namespace', '--wait', PATIENCE]
  return runKubeProgram('helm', [...command, VALUES, ...images, ...flags], { env })
}

/** Goes back to a revision of the release, as Helm counts them, and waits for it. */
export function rollBack(revision: number): Promise<string> {
  return helm('rollback', 'tutti', String(revision), '--wait', PATIENCE)
}

/** Uninstalls the release; @throws Error if it does not end well. */
export function uninstall(): Promise<string> {
  return helm('uninstall', 'tutti', '--ignore-not-found', '--wait', PATIENCE)
}

/** Removes the release and its namespace when the test ends, however it ends; what was made after this call goes before them. */
export function removeAfter(t: Test): void {
  t.teardown(async () => {
    try {
      await uninstall()
    } finally {
      await deleteNamespace(SYSTEM)
    }
  })
}

const NAMESPACED = [
  'deployments,statefulsets,pods,services,serviceaccounts,secrets,configmaps,jobs,leases',
  'roles,rolebindings,poddisruptionbudgets,networkpolicies,ingresses,controllerrevisions',
  'horizontalpodautoscalers,httproutes',
].join(',')

/** Lists what is there of all that the chart and the operator have made, `KIND NAMESPACE/NAME`, sorted. */
export async function leftovers(): Promise<readonly string[]> {
  const kinds = `${NAMESPACED},clusterroles,clusterrolebindings`
  const lists = await Promise.all(
    ['part-of=tutti', 'managed-by=tutti-operator'].map((label) =>
      getObject(kinds, '--all-namespaces', `--selector=app.kubernetes.io/${label}`),
    ),
  )
  const names = lists.flatMap((list) =>
    list['items'].map(({ kind, metadata }: PlainObject) => {
      return `${kind} ${metadata.namespace ?? ''}/${metadata.name}`
    }),
  )
  return [...new Set<string>(names)].toSorted()
}
