import { createHash } from 'node:crypto'
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.mjs'
import { SetupFailure } from './failure.mjs'
import { findGo, goEnvironment, OLDEST_GO } from './go.mjs'
import { buildOnce, goBuild, goInstall } from './go-build.mjs'

/** The module with which programs of Kubernetes are built. */
export const SOURCES = join(import.meta.dirname, 'kubernetes')
const KUBERNETES = '1.34.4'
const HELM = '3.22.0'
/** Without these nothing can be tested; the tests that need another one ask for it by name. */
const NEEDED = ['etcd', 'kube-apiserver']
/** Variables with the folder of somebody who has them, in the order in which they count. */
const NAMING = ['TUTTI_KUBE_BIN', 'KUBEBUILDER_ASSETS']
const OF_ONE_BINARY = [...NEEDED, 'kube-controller-manager', 'kube-scheduler', 'kubectl']

/**
 * Finds what the tests with a real API server need to know: `TUTTI_KUBE_BIN`, a folder with etcd, kube-apiserver and, unless
 * somebody else made it, kube-controller-manager, kube-scheduler, kubectl and helm; or
 * `TUTTI_KUBE_MISSING`, why there is none: those tests then report themselves as skipped.
 *
 * In this order: the folder that TUTTI_KUBE_BIN names; the one that KUBEBUILDER_ASSETS names, as for Go operators; a cache
 * folder outside the checkout; built into it from Go modules, for minutes of all cores.
 *
 * @param {{ env?: NodeJS.ProcessEnv, say?: (line: string) => void }} [o] - `say` takes what is under way.
 * @throws SetupFailure if a folder that is named has no etcd and kube-apiserver.
 */
export async function findKubeBinaries({ env = process.env, say = console.error } = {}) {
  for (const name of NAMING) {
    if (env[name]) return { TUTTI_KUBE_BIN: checkNamed(name, env[name]) }
  }
  const folder = builtFolder(env)
  if (existsSync(folder)) return { TUTTI_KUBE_BIN: folder }
  const go = findGo(env)
  if (go.path === undefined) {
    return missing(
      `they are built with Go ${OLDEST_GO} or newer (https://go.dev/dl), and ${go.reason}; ` +
        'or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver',
    )
  }
  try {
    const what = `Kubernetes ${KUBERNETES} and helm from their Go modules`
    await buildOnce(folder, { what, say }, (o) =>
      build(go.path, { ...o, env: goEnvironment(env, { GOBIN: o.out }) }),
    )
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    say(error.message)
    // A machine without network tests everything else.
    return missing(error.message.trim().split('\n').at(-1))
  }
  return { TUTTI_KUBE_BIN: folder }
}

/** The folder that is named, else the one that has been built; undefined if there is neither. */
export function foundKubeBinaries(env = process.env) {
  const named = NAMING.map((name) => env[name]).find(Boolean)
  const folder = builtFolder(env)
  return named ?? (existsSync(folder) ? folder : undefined)
}

function builtFolder(env) {
  return join(cacheFolder(env), `kubernetes-${digestOfInputs()}`)
}

function checkNamed(name, folder) {
  const lacking = NEEDED.filter((program) => !existsSync(join(folder, program)))
  if (lacking.length === 0) return folder
  throw new SetupFailure(
    `${name} is ${folder}, which lacks ${lacking.join(' and ')}; want a folder with ${NEEDED.join(' and ')}.`,
  )
}

function missing(reason) {
  return { TUTTI_KUBE_MISSING: `there are no programs of Kubernetes: ${reason}` }
}

/** Changes with all that goes into the build, so that no run takes what another version has built. */
function digestOfInputs() {
  const hash = createHash('sha256')
  for (const file of readdirSync(SOURCES).toSorted()) hash.update(readFileSync(join(SOURCES, file)))
  hash.update(JSON.stringify([KUBERNETES, HELM, OF_ONE_BINARY]))
  return `${hash.digest('hex').slice(0, 16)}-${process.platform}-${process.arch}`
}

async function build(go, { source, out, env }) {
  cpSync(SOURCES, source, { recursive: true })
  await goBuild(go, {
    cwd: source,
    env,
    what: 'Kubernetes',
    out: join(out, 'kubernetes'),
    packages: ['.'],
    values: kubernetesVersion(),
  })
  for (const name of OF_ONE_BINARY) symlinkSync('kubernetes', join(out, name))
  await goInstall(go, { cwd: source, env, module: `helm.sh/helm/v3/cmd/helm@v${HELM}` })
}

/** Variables of a build, without which discovery, kubectl and nodes say v0.0.0. */
export function kubernetesVersion() {
  const version = 'k8s.io/component-base/version'
  const [major, minor] = KUBERNETES.split('.')
  return {
    [`${version}.gitVersion`]: `v${KUBERNETES}`,
    [`${version}.gitMajor`]: major,
    [`${version}.gitMinor`]: minor,
    [`${version}.gitTreeState`]: 'clean',
    [`${version}.buildDate`]: '1970-01-01T00:00:00Z',
    'k8s.io/client-go/pkg/version.gitVersion': `v${KUBERNETES}`,
  }
}
