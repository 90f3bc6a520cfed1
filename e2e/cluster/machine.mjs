import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { cacheFolder } from '../../scripts/setup/cache-folder.mjs'
import { runQuietly } from '../../scripts/setup/child.mjs'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { findGo } from '../../scripts/setup/go.mjs'
import { withLock } from '../../scripts/setup/lock.mjs'

const APT_GET = '/usr/bin/apt-get'
const CNI = '/usr/lib/cni/bridge'
/** Debian's packages, and the program or file by which it is known that one is there. */
const PACKAGES = {
  containerd: 'containerd',
  runc: 'runc',
  'containernetworking-plugins': CNI,
  nftables: 'nft',
  iproute2: 'ip',
  'util-linux': 'nsenter',
  mount: 'mount',
  openssl: 'openssl',
}
const CGROUPS = '/sys/fs/cgroup'
const CGROUP2_MAGIC = 0x63677270
const CONTROLLERS = ['cpu', 'memory', 'pids']
/** All that a node's namespaces have to allow. */
const NAMESPACES = ['--net', '--mount', '--uts', '--ipc', '--pid', '--cgroup', '--fork']
const ALLOWED = [
  'mount -t tmpfs tmpfs /mnt',
  'ip link add one type veth peer name other',
  'ip link add three type bridge',
  'nft add table inet four',
].join(' && ')

/**
 * Why a machine cannot run a node, or undefined if it can once `installPackages` has run; all of it is looked at, nothing is
 * changed.
 *
 * @returns {string | undefined} part of a sentence.
 */
export function whyNoNode(env = process.env) {
  if (process.platform !== 'linux') return `a node needs Linux, and this is ${process.platform}`
  if (process.getuid() !== 0) return 'a node needs root, for its namespaces'
  const lacking = lackingPackages(env)
  if (lacking.length > 0 && !existsSync(APT_GET)) {
    return `there is no ${lacking.join(', ')}, and no apt-get to install it`
  }
  const go = findGo(env)
  if (go.path === undefined) return go.reason
  return whyNoCgroups() ?? (lacking.length > 0 ? undefined : whyNoNamespaces())
}

/**
 * Installs Debian's packages that are not there.
 *
 * @throws SetupFailure if one cannot be installed, or the kernel does not allow what they need.
 */
export async function installPackages({ env = process.env, say = console.error } = {}) {
  await withLock(join(cacheFolder(env), 'apt-get.lock'), async () => {
    const lacking = lackingPackages(env)
    if (lacking.length === 0) return
    say(`Installing ${lacking.join(', ')} ...`)
    const options = { env: { ...env, DEBIAN_FRONTEND: 'noninteractive' } }
    await runQuietly('apt-get update', APT_GET, ['update', '-q'], options)
    const args = ['install', '-q', '-y', '--no-install-recommends', ...lacking]
    await runQuietly(`apt-get install ${lacking.join(' ')}`, APT_GET, args, options)
  })
  const reason = whyNoNamespaces()
  if (reason !== undefined) throw new SetupFailure(`There can be no node here: ${reason}.`)
}

/**
 * The cgroup hierarchies of the machine: of version 1 one for each set of controllers, of version 2 one for all.
 *
 * @returns {{ version: 1 | 2, folders: readonly string[] }}
 */
export function cgroupHierarchies() {
  if (statfsSync(CGROUPS).type === CGROUP2_MAGIC) return { version: 2, folders: [CGROUPS] }
  const folders = readdirSync(CGROUPS, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(CGROUPS, name))
  return {
    version: 1,
    folders: folders.filter((folder) => existsSync(join(folder, 'cgroup.procs'))),
  }
}

function lackingPackages(env) {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  const isThere = (name) => {
    const paths = name.startsWith('/') ? [name] : folders.map((folder) => join(folder, name))
    return paths.some((path) => existsSync(path))
  }
  return Object.keys(PACKAGES).filter((name) => !isThere(PACKAGES[name]))
}

function whyNoCgroups() {
  if (!existsSync(CGROUPS)) return `there are no cgroups at ${CGROUPS}`
  const { version, folders } = cgroupHierarchies()
  const found =
    version === 2
      ? readFileSync(join(CGROUPS, 'cgroup.controllers'), 'utf8').trim().split(' ')
      : folders.flatMap((folder) => folder.slice(CGROUPS.length + 1).split(','))
  const lacking = CONTROLLERS.filter((controller) => !found.includes(controller))
  return lacking.length > 0 ? `there is no cgroup controller ${lacking.join(', ')}` : undefined
}

function whyNoNamespaces() {
  if (!/^\s*(?:nodev\s+)?overlay$/m.test(readFileSync('/proc/filesystems', 'utf8'))) {
    // Where it is a module, it is loaded by this.
    spawnSync('modprobe', ['overlay'])
  }
  const { status, stderr, error } = spawnSync('unshare', [...NAMESPACES, 'sh', '-c', ALLOWED], {
    encoding: 'utf8',
  })
  if (status === 0) return undefined
  return `the kernel or the container does not allow its namespaces: ${(error?.message ?? stderr).trim()}`
}
