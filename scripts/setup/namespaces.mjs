import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { APT_GET, installDebianPackages, lackingPackages } from './debian-packages.mjs'
import { SetupFailure } from './failure.mjs'

const PACKAGES = { iproute2: 'tc', nftables: 'nft', 'util-linux': 'nsenter', mount: 'mount' }
/** Commands for what a test in namespaces of its own does to its network and its mounts. */
const ALLOWED = [
  'mount -t tmpfs tmpfs /mnt',
  'ip link add one type bridge',
  'ip link add two type veth peer name three',
  'tc qdisc add dev two root tbf rate 1mbit burst 16kb latency 50ms',
  'nft add table bridge four',
  'test -c /dev/net/tun',
].join(' && ')

/**
 * Finds what tests that bring faults into a network need to know: `TUTTI_NAMESPACES`, the words before a command that runs in
 * namespaces of its own, in which it may change network and mounts, and with which everything in them ends; or
 * `TUTTI_NAMESPACES_MISSING`, why there are none here: those tests then report themselves as skipped. Debian's packages
 * that are not there are installed.
 */
export async function findNamespaces({ env = process.env, say = console.error } = {}) {
  if (process.platform !== 'linux') return missing(`it is ${process.platform}, not Linux`)
  if (process.getuid() !== 0) return missing('it takes root')
  try {
    const lacking = lackingPackages(env, PACKAGES)
    if (lacking.length > 0 && !existsSync(APT_GET)) {
      return missing(`there is no ${lacking.join(', ')}, and no apt-get to install it`)
    }
    await installDebianPackages(PACKAGES, { env, say })
  } catch (error) {
    if (!(error instanceof SetupFailure)) throw error
    // A machine without network tests everything else.
    return missing(error.message.trim().split('\n').at(-1))
  }
  const reason = whyNotAllowed()
  return reason === undefined ? { TUTTI_NAMESPACES: WORDS.join(' ') } : missing(reason)
}

const WORDS = ['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']

function whyNotAllowed() {
  const [command, ...args] = [...WORDS, 'sh', '-c', ALLOWED]
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
  if (status === 0) return undefined
  return `the kernel or the container does not allow it: ${(error?.message ?? stderr).trim()}`
}

function missing(reason) {
  return { TUTTI_NAMESPACES_MISSING: `no namespaces can be made here: ${reason}` }
}
