import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import {
  APT_GET,
  installDebianPackages,
  lackingPackages,
} from '../../scripts/setup/debian-packages.mjs'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { whyNoCgroups } from './cgroups.mjs'

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
/** And for images, where docker does not answer: the base is made of packages, for no registry of images is asked. */
const IMAGE_BUILDER = { buildah: 'buildah', mmdebstrap: 'mmdebstrap' }
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
  const lacking = lackingPackages(env, PACKAGES)
  if (lacking.length > 0 && !existsSync(APT_GET)) {
    return `there is no ${lacking.join(', ')}, and no apt-get to install it`
  }
  return whyNoCgroups() ?? (lacking.length > 0 ? undefined : whyNoNamespaces())
}

/**
 * Installs Debian's packages that are not there.
 *
 * @throws SetupFailure if one cannot be installed, or the kernel does not allow what they need.
 */
export async function installPackages({ env = process.env, say = console.error } = {}) {
  await installDebianPackages(PACKAGES, { env, say })
  const reason = whyNoNamespaces()
  if (reason !== undefined) throw new SetupFailure(`There can be no node here: ${reason}.`)
}

/**
 * Installs what images are built with, where it is not there.
 *
 * @throws SetupFailure that says what is lacking if it cannot be installed.
 */
export async function installImageBuilder({ env = process.env, say = console.error } = {}) {
  const lacking = lackingPackages(env, IMAGE_BUILDER)
  if (lacking.length > 0 && !existsSync(APT_GET)) {
    throw new SetupFailure(
      `Images cannot be built: no daemon of docker answers, there is no ${lacking.join(', ')}, and no apt-get to install it.`,
    )
  }
  await installDebianPackages(IMAGE_BUILDER, { env, say })
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
